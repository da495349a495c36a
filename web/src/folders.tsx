// Where a new chat works: in a folder of its own, or in one of the person's, which is changed only by a delivery.

import { useEffect, useState } from 'preact/hooks';
import { get } from './connection';
import type { FolderView } from './events';
import { visible } from './text';

export function FolderPicker({ chosen, choose }: { chosen: string; choose: (folder: string) => void }) {
  const [at, setAt] = useState<FolderView>();
  const [trouble, setTrouble] = useState('');
  const go = (path: string) =>
    void get<FolderView>(`/api/folders?path=${encodeURIComponent(path)}`).then(
      (found) => {
        setAt(found);
        setTrouble('');
      },
      (error: Error) => setTrouble(error.message),
    );
  useEffect(() => go(chosen), []);
  return (
    <div class="picker">
      <p class="quiet">
        In a folder of yours the team works on a copy; nothing is written there before you agree.
      </p>
      <label>
        Folder{' '}
        <input
          value={chosen}
          placeholder="a new one"
          onChange={(input) => {
            choose(input.currentTarget.value);
            if (input.currentTarget.value) go(input.currentTarget.value);
          }}
        />
      </label>
      {trouble && (
        <p class="bad" role="alert">
          {trouble}
        </p>
      )}
      {at && (
        <>
          <div class="buttons">
            <button type="button" class="primary" onClick={() => choose(at.path)}>
              Work in {visible(at.path.split('/').at(-1) || '/')}
              {at.repository ? ' (a repository)' : ''}
            </button>
            {chosen && (
              <button type="button" onClick={() => choose('')}>
                A new folder instead
              </button>
            )}
          </div>
          <ul class="folders" aria-label={`Folders in ${at.path}`} tabIndex={0}>
            {at.parent !== at.path && (
              <li>
                <button type="button" class="link" onClick={() => go(at.parent)}>
                  ↑ up
                </button>
              </li>
            )}
            {at.folders.map((name) => (
              <li key={name}>
                <button type="button" class="link" onClick={() => go(`${at.path}/${name}`)}>
                  {visible(name)}
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
