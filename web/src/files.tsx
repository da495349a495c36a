// What the programs made, and all files of the newest version.

import { Output as Text } from './code';
import { useText } from './codetab';
import { artefact, view } from './state';
import { size, visible } from './text';
import type { Artefact } from './view';

const ROWS = 200;

export function OutputTab() {
  const made = [...view.value.artefacts].reverse();
  if (!made.length) return <p class="empty">The program has made no files yet.</p>;
  return (
    <div>
      {made.map((one) => (
        <Piece one={one} key={`${one.version} ${one.path}`} />
      ))}
    </div>
  );
}

function Piece({ one }: { one: Artefact }) {
  const address = artefact(one.sha256!, one.path);
  return (
    <figure class="made">
      <figcaption>
        <b>{visible(one.path)}</b>{' '}
        <span class="quiet">
          v{one.version} · {visible(one.purpose)} · {size(one.size ?? 0)}
        </span>{' '}
        <a href={artefact(one.sha256!, one.path, 'download')} download>
          Download
        </a>
      </figcaption>
      <Shown path={one.path} address={address} />
    </figure>
  );
}

function Shown({ path, address }: { path: string; address: string }) {
  const end = path.split('.').at(-1)?.toLowerCase() ?? '';
  if (['png', 'jpg', 'jpeg', 'gif', 'webp', 'bmp', 'svg'].includes(end))
    return (
      <a href={address} target="_blank" rel="noopener">
        <img src={address} alt={path} />
      </a>
    );
  if (['html', 'htm'].includes(end)) return <iframe sandbox="" src={address} title={path} />;
  if (['csv', 'tsv'].includes(end)) return <Table address={address} separator={end === 'csv' ? ',' : '\t'} />;
  if (['txt', 'md', 'json', 'log', 'py', 'xml', 'yaml', 'yml', 'jsonl'].includes(end))
    return <Plain address={address} label={path} />;
  return null;
}

function Plain({ address, label }: { address: string; label: string }) {
  return <Text text={useText(`${address}?text`) ?? ''} label={label} />;
}

function Table({ address, separator }: { address: string; separator: string }) {
  const [head = [], ...rows] = cells(useText(`${address}?text`) ?? '', separator);
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index}>{visible(cell)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS).map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{visible(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ROWS && <p class="quiet">{rows.length - ROWS} more rows in the file</p>}
    </div>
  );
}

/** Rows of a separated file; quotes hold separators, line ends and doubled quotes. */
export function cells(text: string, separator: string): string[][] {
  const rows: string[][] = [];
  const pattern = new RegExp(`("(?:[^"]|"")*"|[^${separator}\\r\\n]*)(${separator}|\\r?\\n|$)`, 'g');
  let row: string[] = [];
  for (const [, cell = '', end] of text.slice(0, 1 << 20).matchAll(pattern)) {
    row.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end === separator) continue;
    if (row.length > 1 || row[0]) rows.push(row);
    row = [];
    if (rows.length > ROWS * 50) break;
  }
  return rows;
}

export function FilesTab() {
  const { versions, artefacts, chat, workspace } = view.value;
  const version = versions.at(-1);
  if (!version) return <p class="empty">No files yet.</p>;
  const written = version.files.map((file) => ({ ...file, by: 'written' }));
  const byRuns = artefacts
    .filter((one) => one.version === version.number)
    .map((one) => ({
      path: one.path,
      sha256: one.sha256!,
      size: one.size ?? 0,
      by: `made by ${one.purpose}`,
    }));
  const folders = new Map<string, typeof written>();
  for (const file of [...written, ...byRuns].sort((one, other) => one.path.localeCompare(other.path))) {
    const folder = file.path.includes('/') ? file.path.slice(0, file.path.lastIndexOf('/') + 1) : '';
    folders.set(folder, [...(folders.get(folder) ?? []), file]);
  }
  return (
    <div>
      <div class="buttons">
        <a class="button" href={`/api/chats/${chat}/versions/v${version.number}.zip`} download>
          All of v{version.number} as a zip
        </a>
        <a class="button" href={`/api/chats/${chat}/export/md`} download>
          The chat as Markdown
        </a>
      </div>
      {[...folders].map(([folder, files]) => (
        <section key={folder}>
          {folder && (
            <h3>
              <code>{visible(folder)}</code>
            </h3>
          )}
          <ul class="tree">
            {files.map((file) => (
              <li key={file.path}>
                <a href={artefact(file.sha256, file.path)} target="_blank" rel="noopener">
                  {visible(file.path.slice(folder.length))}
                </a>{' '}
                <span class="quiet">
                  {size(file.size)} · {visible(file.by)}
                </span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p class="quiet on-disk">
        On disk: <code>{visible(workspace)}</code>
      </p>
    </div>
  );
}
