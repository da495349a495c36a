// What a finished chat would change in the person's folder: shown file by file, written when the person says so.

import { useEffect, useState } from 'preact/hooks';
import { get } from './connection';
import { act, view } from './state';
import { visible } from './text';
import { theme } from './theme';

interface FileDiff {
  path: string;
  diff: string;
}
interface Pending {
  folder: string;
  files: FileDiff[];
}

const NOTHING: Pending = { folder: '', files: [] };

export function Delivery() {
  const { chat, seq } = view.value;
  const [{ folder, files }, setPending] = useState(NOTHING);
  const [left, setLeft] = useState<Record<string, boolean>>({});
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    let wanted = true;
    get<Pending>(`/api/chats/${encodeURIComponent(chat)}/delivery`).then(
      (found) => wanted && setPending(found),
      () => wanted && setPending(NOTHING),
    );
    return () => {
      wanted = false;
    };
  }, [chat, seq]);
  if (!files.length) return null;
  const chosen = files.filter((file) => !left[file.path]).map((file) => file.path);
  const write = async () => {
    setBusy(true);
    await act('deliver', { files: chosen });
    setBusy(false);
  };
  return (
    <div class="ask" role="region" aria-label="Delivery">
      <p>
        <b>Write this to {visible(folder)}?</b> Your own edits there are merged, never lost.
      </p>
      {files.map((file) => (
        <FileChoice
          key={file.path}
          file={file}
          taken={!left[file.path]}
          toggle={() => setLeft({ ...left, [file.path]: !left[file.path] })}
        />
      ))}
      <div class="buttons">
        <button type="button" class="primary" disabled={busy || !chosen.length} onClick={() => void write()}>
          {busy ? 'Writing …' : `Write ${chosen.length} of ${files.length}`}
        </button>
      </div>
    </div>
  );
}

function FileChoice({ file, taken, toggle }: { file: FileDiff; taken: boolean; toggle: () => void }) {
  const [shown, setShown] = useState(false);
  return (
    <div>
      <label>
        <input type="checkbox" checked={taken} onChange={toggle} /> {visible(file.path)}
      </label>{' '}
      <button type="button" class="link" aria-expanded={shown} onClick={() => setShown(!shown)}>
        {shown ? 'Hide' : 'Show'} the change
      </button>
      {shown && <Difference file={file} />}
    </div>
  );
}

function Difference({ file }: { file: FileDiff }) {
  const [html, setHtml] = useState('');
  const dark = theme.value === 'dark';
  useEffect(() => {
    let wanted = true;
    void import('./diff').then(({ drawn, loadStyle }) => {
      loadStyle();
      if (wanted) setHtml(drawn(file.diff, ['a', 'b'], false, dark));
    });
    return () => {
      wanted = false;
    };
  }, [file.diff, dark]);
  return (
    <div
      class="changes"
      tabIndex={0}
      role="region"
      aria-label={`Change of ${file.path}`}
      dangerouslySetInnerHTML={{ __html: html }}
    />
  );
}
