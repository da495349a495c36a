// The code: a line of versions, each whole or compared with another, to restore or to fork from.

import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { languageOf, Source } from './code';
import type { FileRef, VersionWritten } from './events';
import { ReviewCard } from './items';
import { confirm } from './confirm';
import { act, artefact, open, view, where } from './state';
import { theme } from './theme';
import { visible } from './text';
import { getText } from './connection';

/** Files, or how changes are shown; it stays when another tab is looked at. */
const shownAs = signal<'files' | 'unified' | 'split'>('unified');

export function CodeTab() {
  const { versions, reviews, chat } = view.value;
  const look = shownAs.value;
  if (!versions.length) return <p class="empty">No code yet.</p>;
  const number = Math.min(where.value.version || versions.length, versions.length);
  const version = versions[number - 1]!;
  const review = reviews.get(number);
  return (
    <div>
      <div class="buttons">
        <div class="timeline" role="group" aria-label="Versions">
          {versions.map((one) => (
            <button
              type="button"
              key={one.number}
              aria-pressed={one.number === number}
              onClick={() => open(chat, one.number)}
              class={reviews.get(one.number)?.verdict ?? ''}
            >
              v{one.number}
            </button>
          ))}
        </div>
        <span class="gap" />
        <Again version={version} />
        <a class="button" href={`/api/chats/${chat}/versions/v${number}.zip`} download>
          Zip
        </a>
      </div>
      <div class="buttons">
        {(['files', 'unified', 'split'] as const).map((one) => (
          <button
            type="button"
            key={one}
            aria-pressed={number < 2 ? one === 'files' : look === one}
            disabled={one !== 'files' && number < 2}
            onClick={() => (shownAs.value = one)}
          >
            {one === 'files'
              ? 'Files'
              : one === 'unified'
                ? number < 2
                  ? 'Changes'
                  : `Changes since v${number - 1}`
                : 'Side by side'}
          </button>
        ))}
      </div>
      {version.note && <p class="words">{visible(version.note)}</p>}
      {look === 'files' || number < 2 ? (
        <Files version={version} />
      ) : (
        <Changes old={number - 1} new={number} split={look === 'split'} />
      )}
      {review && <ReviewCard review={review} />}
    </div>
  );
}

function Again({ version }: { version: VersionWritten }) {
  const newest = version.number === view.value.versions.length;
  const fork = async () => {
    const made = await act('fork', { version: `v${version.number}` });
    if (made) open(made.chat);
  };
  const restore = () =>
    confirm(`Make v${version.number} the newest version again? Nothing is deleted.`, 'Restore', () =>
      act('restore', { version: `v${version.number}` }),
    );
  return (
    <>
      {!newest && (
        <button type="button" onClick={restore}>
          Restore
        </button>
      )}
      <button
        type="button"
        title={`A new chat that starts at v${version.number}`}
        onClick={() => void fork()}
      >
        Fork
      </button>
    </>
  );
}

function Files({ version }: { version: VersionWritten }) {
  const [path, setPath] = useState('');
  const file = version.files.find((one) => one.path === path) ?? version.files[0];
  if (!file) return <p class="empty">This version has no files.</p>;
  return (
    <div>
      <div class="file-tabs" role="group" aria-label="Files">
        {version.files.map((one) => (
          <button type="button" key={one.path} aria-pressed={one === file} onClick={() => setPath(one.path)}>
            {visible(one.path)}
          </button>
        ))}
      </div>
      <FileText file={file} />
    </div>
  );
}

export function useText(address: string): string | undefined {
  const [text, setText] = useState<string>();
  useEffect(() => {
    let wanted = true;
    getText(address).then(
      (found) => wanted && setText(found),
      (error: Error) => wanted && setText(error.message),
    );
    return () => {
      wanted = false;
    };
  }, [address]);
  return text;
}

function FileText({ file }: { file: FileRef }) {
  const text = useText(artefact(file.sha256, file.path, 'text'));
  return <Source text={text ?? ''} language={languageOf(file.path)} numbered />;
}

function Changes({ old, new: fresh, split }: { old: number; new: number; split: boolean }) {
  const text = useText(`/api/chats/${view.value.chat}/diff?old=${old}&new=${fresh}`);
  const [html, setHtml] = useState('');
  const dark = theme.value === 'dark';
  useEffect(() => {
    let wanted = Boolean(text);
    if (wanted)
      void import('./diff').then(({ drawn, loadStyle }) => {
        loadStyle();
        if (wanted && text) setHtml(drawn(text, [`v${old}`, `v${fresh}`], split, dark));
      });
    return () => {
      wanted = false;
    };
  }, [text, split, dark]);
  if (!text) return <p class="empty">{text === '' ? 'Nothing changed.' : 'Comparing …'}</p>;
  return (
    <div
      class="changes"
      tabIndex={0}
      role="region"
      aria-label={`Changes from v${old} to v${fresh}`}
      dangerouslySetInnerHTML={{ __html: html }}
    />
  );
}
