// Text that others wrote, made safe to look at: hidden direction marks are shown, long things are cut, HTML is cleaned.

import DOMPurify from 'dompurify';
import { Marked } from 'marked';

export const LONGEST_SHOWN = 120_000;
const LONGEST_LINE = 5_000;
const HIDDEN =
  /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f\u{e0000}-\u{e007f}]/gu;

/** Characters that could make text read as something else are shown by their numbers. */
export function visible(text: string): string {
  return text.replace(
    HIDDEN,
    (one) => `⟨U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`,
  );
}

/** What a run was for: 'check P2'. */
/** How many of something, in words: one file, two files. */
export function counted(number: number, one: string): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : `${one}s`}`;
}

/** The beginning and the end of a long text; lines that no screen holds are cut. */
export function cut(text: string, most = LONGEST_SHOWN): string {
  const whole =
    text.length <= most
      ? text
      : `${text.slice(0, (most * 2) / 3)}\n\n… ${(text.length - most).toLocaleString('en')} characters left out …\n\n${text.slice(-most / 3)}`;
  if (whole.length < LONGEST_LINE) return whole;
  return whole
    .split('\n')
    .map((line) =>
      line.length > LONGEST_LINE
        ? `${line.slice(0, LONGEST_LINE)} … (${line.length.toLocaleString('en')} characters)`
        : line,
    )
    .join('\n');
}

const marked = new Marked({ gfm: true, breaks: true, async: false });
marked.use({
  renderer: {
    image: ({ text, href }) => `<span>[picture: ${escape(text || href)}]</span>`,
    html: ({ text }) => escape(text),
  },
});
const cleaner = DOMPurify(window);
const ALLOWED = [
  'p',
  'br',
  'hr',
  'strong',
  'em',
  'del',
  'code',
  'pre',
  'blockquote',
  'ul',
  'ol',
  'li',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
  'table',
  'thead',
  'tbody',
  'tr',
  'th',
  'td',
  'a',
  'span',
];

/** Markdown as clean HTML: no scripts, styles, forms, pictures from elsewhere, nor anything that looks like our controls. */
export function markdown(text: string): string {
  const html = marked.parse(cut(visible(text))) as string;
  return cleaner.sanitize(html, {
    ALLOWED_TAGS: ALLOWED,
    ALLOWED_ATTR: ['href', 'class', 'start'],
    ALLOWED_URI_REGEXP: /^https?:/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

cleaner.addHook('afterSanitizeAttributes', (node) => {
  if (node.nodeName === 'A') {
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer nofollow');
  }
  const name = node.getAttribute?.('class');
  if (name && !(node.nodeName === 'CODE' && /^language-[\w+#-]{1,20}$/.test(name)))
    node.removeAttribute('class');
});

export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}

export function clock(iso: string): string {
  const date = new Date(iso);
  const today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(
    'en-GB',
    today
      ? { hour: '2-digit', minute: '2-digit' }
      : { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
  );
}

export function size(bytes: number): string {
  return bytes < 1024
    ? `${bytes} B`
    : bytes < 1 << 20
      ? `${(bytes / 1024).toFixed(1)} KB`
      : `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

export function short(count: number): string {
  return count < 1000
    ? `${count}`
    : count < 1e6
      ? `${(count / 1000).toFixed(1)}k`
      : `${(count / 1e6).toFixed(1)}M`;
}
