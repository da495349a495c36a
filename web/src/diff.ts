// Differences between versions; loaded when the first one is looked at.

import { html } from 'diff2html';
import DOMPurify from 'dompurify';
import { cut, visible } from './text';

const LONGEST = 400_000;

export function drawn(text: string, [old, fresh]: [string, string], split: boolean, dark: boolean): string {
  const page = html(cut(visible(text), LONGEST), {
    outputFormat: split ? 'side-by-side' : 'line-by-line',
    drawFileList: false,
    srcPrefix: `${old}/`,
    dstPrefix: `${fresh}/`,
    matching: 'lines',
    colorScheme: (dark ? 'dark' : 'light') as never,
  });
  const clean = DOMPurify.sanitize(page, {
    FORBID_TAGS: ['style', 'form', 'input', 'a', 'svg', 'button'],
    FORBID_ATTR: ['style', 'id', 'href'],
  });
  const marked = clean.replace(/<div class="(d2h-file-(?:side-)?diff)"/g, '<div class="$1" tabindex="0"');
  return split ? sideBySide(marked) : marked;
}

/** Both sides in one table: their lines wrap together, so that the change is in sight however narrow it is. */
function sideBySide(page: string): string {
  const place = document.createElement('template');
  place.innerHTML = page;
  for (const sides of place.content.querySelectorAll('.d2h-files-diff')) {
    const [left, right] = [...sides.querySelectorAll('.d2h-file-side-diff')];
    const others = right?.querySelectorAll('tr') ?? [];
    left?.querySelectorAll('tr').forEach((row, index) => row.append(...(others[index]?.cells ?? [])));
    right?.remove();
  }
  return place.innerHTML;
}

export function loadStyle(): void {
  const address = document.querySelector<HTMLMetaElement>('meta[name=diff-style]')?.content;
  if (!address || document.querySelector(`link[href="${address}"]`)) return;
  const style = document.createElement('link');
  style.rel = 'stylesheet';
  style.href = address;
  document.head.prepend(style);
}
