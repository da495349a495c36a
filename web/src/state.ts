// What the page is showing: one chat, the list, where we are and how we look. Signals redraw what reads them.

import { computed, signal } from '@preact/signals';
import { Connection, type Frame, type Link, post } from './connection';
import type { ChatView, Event, EventText, ConductorStatus, Summary } from './events';
import { Live } from './live';
import { titleOf } from './people';
import { View } from './view';

export const TABS = ['Plan', 'Code', 'Run', 'Output', 'Files', 'Cost', 'Log'] as const;
export type Tab = (typeof TABS)[number];
export interface Where {
  chat: string;
  version: number;
  message: number;
}

export const where = signal<Where>(read());
export const tab = signal<Tab>('Plan');
export const pane = signal<'chats' | 'talk' | 'work'>('talk');
export const chats = signal<Summary[] | undefined>(undefined);
const opened = signal<View>(new View(''));
const drawn = signal(0);
export const streamed = signal(0);
/** The chat that is open. It grows in place: who reads it is drawn again when it has grown. */
export const view = {
  get value(): View {
    drawn.value;
    return opened.value;
  },
};
export const live = signal(new Live());
export const standing = signal<ConductorStatus | undefined>(undefined);
export const link = signal<Link>('joining');
export const trouble = signal('');
export const announced = signal('');
export const ready = signal(false);
/** Whether another program is seen at work on the chat. */
export const elsewhere = signal(false);
/** Whether nobody is seen at work on the chat: what its log says of a turn is what comes next. */
export const paused = computed(
  () => standing.value !== undefined && !standing.value.conducted && !elsewhere.value,
);
/** What is typed and not sent: it stays with its chat, also over a reload. */
export const draft = signal('');
/** Whether the plan's editor holds changes that are not saved. */
export const planDraft = signal(false);

export function setDraft(text: string): void {
  draft.value = text;
  if (text) sessionStorage.setItem(`draft ${where.value.chat}`, text);
  else sessionStorage.removeItem(`draft ${where.value.chat}`);
}

let connection: Connection | undefined;
let scheduled = 0;
/** Whether the person has chosen a tab in this chat; until then it is the plan, and the changes once there are any. */
let chosen = false;

export function chooseTab(name: Tab): void {
  chosen = true;
  tab.value = name;
}

/** `/chat/NAME`, `/chat/NAME/v2`, `/chat/NAME#m12`. */
function read(): Where {
  const [, chat = '', version = ''] = /^\/chat\/([^/]+)(?:\/v(\d+))?/.exec(location.pathname) ?? [];
  const [, message = ''] = /^#m(\d+)$/.exec(location.hash) ?? [];
  return { chat: decodeURIComponent(chat), version: Number(version), message: Number(message) };
}

export function open(chat: string, version = 0, message = 0): void {
  history.pushState(
    null,
    '',
    chat
      ? `/chat/${encodeURIComponent(chat)}${version ? `/v${version}` : ''}${message ? `#m${message}` : ''}`
      : '/',
  );
  arrive();
}

export function arrive(): void {
  const before = where.value.chat;
  where.value = read();
  trouble.value = '';
  if (before !== where.value.chat || !connection) join(where.value.chat);
  if (where.value.version) chooseTab('Code');
  pane.value = where.value.version ? 'work' : 'talk';
}

function join(chat: string): void {
  connection?.close();
  const fresh = (opened.value = new View(chat));
  live.value = new Live();
  standing.value = undefined;
  ready.value = false;
  link.value = 'joining';
  chosen = false;
  tab.value = 'Plan';
  draft.value = sessionStorage.getItem(`draft ${chat}`) ?? '';
  document.title = chat ? `${chat} · septet` : 'septet';
  connection = new Connection(chat, () => fresh.seq, receive, linked);
}

function linked(now: Link): void {
  if (now === 'joining') live.value = new Live();
  link.value = now;
  // The list of chats comes, even if the one that was asked for is not there.
  if (now === 'unknown')
    connection = new Connection(
      '',
      () => 0,
      receive,
      () => undefined,
    );
}

function receive(frame: Frame): void {
  switch (frame.kind) {
    case 'events':
      for (const event of frame.events) recorded(event, frame.texts[event.seq]);
      break;
    case 'chat':
      opened.peek().update(frame.chat);
      break;
    case 'pieces':
      for (const piece of frame.pieces) live.value.add(piece);
      notice(opened.peek().seq);
      break;
    case 'standing':
      standing.value = frame.standing;
      elsewhere.value = false;
      if (!frame.standing.conducted) live.value.end();
      break;
    case 'chats':
      listed(frame.chats);
      break;
    case 'ready':
      ready.value = true;
  }
  // A long history is drawn once, when it is whole.
  if (ready.peek() && !scheduled) scheduled = requestAnimationFrame(draw);
}

function draw(): void {
  scheduled = 0;
  if (!chosen && opened.peek().versions.length) tab.value = 'Code';
  drawn.value = opened.peek().revision;
  const { chat, state } = opened.peek();
  if (chat) document.title = `${sign(state)}${state.title || chat} · septet`;
  streamed.value += 1;
}

/** In the browser's tab: the team waits for an answer, or how the chat ended. */
function sign({ question, ending }: ChatView): string {
  return question ? '◆ ' : ending ? (ending.good ? '✓ ' : '✗ ') : '';
}

function recorded(event: Event, text?: EventText): void {
  const now = opened.peek();
  now.add(event, text);
  if (event.type === 'septet.turn_opened') notice(event.seq);
  if (event.type === 'septet.model_answered') {
    live.value.end('text', event.data.role);
    live.value.end('reasoning', event.data.role);
  } else if (event.type === 'septet.run_finished') live.value.end('output');
  else if (event.type === 'septet.turn_opened') live.value.endOthers(event.data.speaker);
  const last = now.items.at(-1);
  if (ready.value && last?.seq === event.seq) announced.value = announcement(last);
}

/** Work that is seen while this server does not conduct the chat: another program's, if it is newer than the server's. */
function notice(seq: number): void {
  const now = standing.value;
  if (ready.value && !now?.conducted && seq > (now?.reached ?? 0)) elsewhere.value = true;
}

function announcement(item: View['items'][number]): string {
  if (item.kind === 'runs' || item.kind === 'tools') return '';
  return `${titleOf(item.who, opened.peek().state)}: ${item.text.slice(0, 160)}`;
}

function listed(fresh: Summary[]): void {
  const known = new Map((chats.value ?? []).map((one) => [one.chat, one]));
  for (const one of fresh) known.set(one.chat, one);
  chats.value = [...known.values()].sort((one, other) => other.changed - one.changed);
}

/** Do something to the chat that is open; what goes wrong is told in one line. */
/** The acts that answer what the team asks: they name the question on the screen, and no other is answered. */
const ANSWERS = ['say', 'step', 'resume'];

export async function act(name: string, more: object = {}): Promise<{ chat: string } | undefined> {
  trouble.value = '';
  const action = ANSWERS.includes(name) && view.value.state.question?.action;
  try {
    return await post<{ chat: string }>(`/api/chats/${encodeURIComponent(view.value.chat)}/acts`, {
      act: name,
      ...(action && !('to' in more) && { action }),
      ...more,
    });
  } catch (error) {
    trouble.value = (error as Error).message;
    return undefined;
  }
}

export function artefact(sha: string, name: string, how = ''): string {
  return `/artefacts/${sha}/${name.split('/').map(encodeURIComponent).join('/')}${how && `?${how}`}`;
}
