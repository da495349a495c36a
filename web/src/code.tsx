// Code and program output: coloured when the highlighter has arrived, plain until then.

import { useEffect, useRef, useState } from 'preact/hooks';
import { cut, visible } from './text';

const LONGEST_COLOURED = 60_000;

/** Colour every code block below an element and give it a copy button. */
export function useColours(html: string) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const blocks = [...(place.current?.querySelectorAll<HTMLElement>('pre > code') ?? [])];
    for (const block of blocks) addCopy(block);
    const small = blocks.filter((block) => (block.textContent?.length ?? 0) < LONGEST_COLOURED);
    if (small.length) void import('./highlight').then(({ colour }) => small.forEach(colour));
  }, [html]);
  return place;
}

function addCopy(block: HTMLElement): void {
  const frame = block.parentElement;
  if (!frame || frame.querySelector('.copy')) return;
  frame.tabIndex = 0;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.onclick = () =>
    void navigator.clipboard.writeText(block.textContent ?? '').then(() => (button.textContent = 'Copied'));
  frame.append(button);
}

export function Source({
  text,
  language,
  numbered = false,
}: {
  text: string;
  language: string;
  numbered?: boolean;
}) {
  const shown = cut(visible(text));
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    const block = place.current;
    if (!block) return;
    block.textContent = shown;
    delete block.dataset.highlighted;
    block.className = `language-${language}`;
    if (shown.length < LONGEST_COLOURED)
      void import('./highlight').then(
        ({ colour }) => block.isConnected && block.textContent === shown && colour(block),
      );
  }, [shown, language]);
  return (
    <pre class="source" tabIndex={0}>
      {numbered && (
        <span class="line-numbers" aria-hidden="true">
          {lineNumbers(shown)}
        </span>
      )}
      <code ref={place} />
    </pre>
  );
}

function lineNumbers(text: string): string {
  const lines = text.replace(/\n$/, '').split('\n').length;
  return Array.from({ length: lines }, (_, index) => index + 1).join('\n');
}

/** What a program wrote, with its colours. */
export function Output({ text, label }: { text: string; label: string }) {
  const shown = cut(text);
  const [html, setHtml] = useState<string>();
  useEffect(() => {
    let wanted = true;
    if (shown.includes('\u001b'))
      void import('./ansi').then(({ coloured }) => wanted && setHtml(coloured(shown)));
    else setHtml(undefined);
    return () => {
      wanted = false;
    };
  }, [shown]);
  if (html !== undefined)
    return <pre class="output" tabIndex={0} aria-label={label} dangerouslySetInnerHTML={{ __html: html }} />;
  return (
    <pre class="output" tabIndex={0} aria-label={label}>
      {visible(shown.replace(/\u001b\[[0-9;]*[A-Za-z]/g, ''))}
    </pre>
  );
}

export function languageOf(path: string): string {
  const ends: Record<string, string> = {
    py: 'python',
    js: 'javascript',
    ts: 'typescript',
    md: 'markdown',
    html: 'xml',
    svg: 'xml',
    xml: 'xml',
    yml: 'yaml',
    yaml: 'yaml',
    sh: 'bash',
    toml: 'ini',
    cfg: 'ini',
    ini: 'ini',
    json: 'json',
    css: 'css',
  };
  return ends[path.split('.').at(-1)?.toLowerCase() ?? ''] ?? 'plaintext';
}
