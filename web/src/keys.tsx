// Everything by keyboard; `?` shows how.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { approve, stop } from './question';
import { act, chooseTab, open, pane, standing, TABS, view } from './state';
import { turnTheme } from './theme';

export const help = signal(false);

const KEYS: [string, string][] = [
  ['?', 'this list'],
  ['n', 'new chat'],
  ['/', 'search all chats'],
  ['c', 'type a message'],
  ['j  k', 'next, previous message'],
  ['a', 'approve the plan'],
  ['p', 'pause before the next turn, or resume'],
  ['s', 'take one step'],
  ['x', 'stop the chat'],
  ['1 – 7', TABS.join(', ')],
  ['d', 'dark or light'],
  ['Esc', 'leave a field or this list'],
];

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  );
}

function walk(step: number): void {
  const entries = [...document.querySelectorAll<HTMLElement>('.talk article')];
  const at = entries.findIndex((entry) => entry.contains(document.activeElement));
  const next =
    entries[
      at < 0 ? (step > 0 ? 0 : entries.length - 1) : Math.min(entries.length - 1, Math.max(0, at + step))
    ];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

function toggle(): void {
  const now = standing.value;
  if (!view.value.ended && view.value.seq) void act(now?.conducted && !now.pausing ? 'pause' : 'resume');
}

/** At once where it is to be seen, so that what is typed next goes there and is not taken for a key; else when it is. */
function search(): void {
  const focus = () => document.getElementById('search')?.focus();
  pane.value = 'chats';
  focus();
  requestAnimationFrame(focus);
}

const DOES: Record<string, () => void> = {
  '?': () => (help.value = true),
  n: () => open(''),
  '/': search,
  c: () => document.getElementById('composer')?.focus(),
  j: () => walk(1),
  k: () => walk(-1),
  a: () => {
    if (view.value.state.question?.kind === 'plan') approve();
  },
  p: toggle,
  s: () => {
    if (!view.value.ended && view.value.seq) void act('step');
  },
  x: () => {
    if (!view.value.ended && view.value.seq) stop();
  },
  d: turnTheme,
};

export function listenToKeys(): void {
  addEventListener('keydown', (key) => {
    if (key.key === 'Escape' && typing(key.target)) return (key.target as HTMLElement).blur();
    if (
      typing(key.target) ||
      key.ctrlKey ||
      key.metaKey ||
      key.altKey ||
      document.querySelector('dialog[open]')
    )
      return;
    const number = Number(key.key);
    if (number >= 1 && number <= TABS.length) {
      chooseTab(TABS[number - 1]!);
      pane.value = 'work';
    } else if (Object.hasOwn(DOES, key.key)) DOES[key.key]!();
    else return;
    key.preventDefault();
  });
}

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (help.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [help.value]);
  return (
    <dialog ref={dialog} aria-label="Keyboard" onClose={() => (help.value = false)}>
      <h2>Keyboard</h2>
      <dl>
        {KEYS.map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="primary" onClick={() => (help.value = false)}>
        Close
      </button>
    </dialog>
  );
}
