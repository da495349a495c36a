// The server: requests whose errors are sentences, and one socket that comes back by itself where it left off.

import type {
  ChatView,
  DemoView,
  Event,
  EventText,
  StreamPiece,
  Presence,
  ConductorStatus,
  Summary,
} from './events';

export interface ModelState {
  name: string;
  reason: string;
}
export interface Setup {
  teams: string[];
  team: string;
  demos: DemoView[];
}
export interface Person {
  presence: Presence;
  silent: number;
}
export interface Hit {
  chat: string;
  seq: number;
  who: string;
  words: string;
}
export type Frame =
  | { kind: 'events'; events: Event[]; texts: Record<number, EventText> }
  | { kind: 'chat'; chat: ChatView }
  | { kind: 'pieces'; pieces: StreamPiece[] }
  | { kind: 'standing'; standing: ConductorStatus }
  | { kind: 'chats'; chats: Summary[] }
  | { kind: 'ready'; seq: number };
export type Link = 'joining' | 'live' | 'lost' | 'closed' | 'unknown';

export async function get<T>(path: string): Promise<T> {
  return (await answered(fetch(path))).json() as Promise<T>;
}

export async function getText(path: string): Promise<string> {
  return (await answered(fetch(path))).text();
}

export async function post<T>(path: string, body: object): Promise<T> {
  return (
    await answered(
      fetch(path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    )
  ).json() as Promise<T>;
}

async function answered(asked: Promise<Response>): Promise<Response> {
  const response = await asked.catch(() => {
    throw new Error('the server does not answer: is septet web still running?');
  });
  if (response.ok) return response;
  const told = (await response.json().catch(() => ({}))) as { error?: string; remedy?: string };
  throw new Error(
    [told.error ?? `the server answered ${response.status}`, told.remedy].filter(Boolean).join(': '),
  );
}

const FIRST_WAIT = 250;
const LONGEST_WAIT = 5000;
const NOT_HERE = 4404;

export class Connection {
  private socket?: WebSocket;
  private timer = 0;
  private wait = FIRST_WAIT;
  private ended = false;

  constructor(
    private chat: string,
    private after: () => number,
    private hear: (frame: Frame) => void,
    private tell: (link: Link) => void,
  ) {
    this.join();
    addEventListener('online', this.hurry);
  }

  close(): void {
    this.ended = true;
    clearTimeout(this.timer);
    removeEventListener('online', this.hurry);
    this.socket?.close();
  }

  private hurry = (): void => {
    if (this.socket?.readyState === WebSocket.CLOSED && !this.ended) {
      clearTimeout(this.timer);
      this.join();
    }
  };

  private join(): void {
    const query = this.chat ? `?chat=${encodeURIComponent(this.chat)}&after=${this.after()}` : '';
    const socket = new WebSocket(
      `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live${query}`,
    );
    this.socket = socket;
    socket.onopen = () => {
      this.wait = FIRST_WAIT;
      this.tell(this.chat ? 'joining' : 'live');
    };
    socket.onmessage = (message) => {
      if (this.ended) return;
      const frame = JSON.parse(message.data as string) as Frame;
      this.hear(frame);
      if (frame.kind === 'ready') this.tell('live');
    };
    socket.onclose = (closing) => {
      if (this.ended) return;
      if (closing.code === NOT_HERE) return this.tell('unknown');
      this.tell('lost');
      this.timer = setTimeout(() => this.join(), this.wait);
      this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
    };
  }
}
