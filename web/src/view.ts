// One chat as the page shows it: its conversation, made of the log, and what the server computes of its state.

import type {
  ChatView,
  EvidenceFound,
  Event,
  EventText,
  FileChange,
  RunOutcome,
  Plan,
  ReviewGiven,
  RunStarted,
  RunResult,
  Reference,
  Source,
  ToolAnswered,
  ToolCalled,
  VersionWritten,
} from './events';
import { fold } from './fold';

interface Entry {
  seq: number;
  at: string;
  who: string;
}
export interface Said extends Entry {
  kind: 'said';
  model: string;
  text: string;
  reasoning: string;
  plan?: { plan: Plan; checks: string[] };
  version?: VersionWritten;
  review?: ReviewGiven;
  refused?: string;
}
export interface Runs extends Entry {
  kind: 'runs';
  version: number;
  runs: Run[];
  evidence: (EvidenceFound & { text: string })[];
}
export interface Spoken extends Entry {
  kind: 'person';
  text: string;
  to: string;
  /** Sent while a member was at work: the next turn hears it. */
  queued?: boolean;
}
export interface Note extends Entry {
  kind: 'note';
  text: string;
  tone: 'plain' | 'good' | 'bad';
  more?: { title: string; text: string };
}
/** The end of the chat, or an earlier one: how the newest one is to be seen is the server's word. */
export interface End extends Entry {
  kind: 'end';
  text: string;
}
export interface Facts extends Entry {
  kind: 'facts';
  text: string;
  add: string[];
  drop: string[];
}
export interface Example extends Entry {
  kind: 'example';
  text: string;
  code: string;
  source: string;
  title: string;
}
export interface Tools extends Entry {
  kind: 'tools';
  calls: Call[];
}
export interface Given extends Entry {
  kind: 'given';
  text: string;
  sources: Source[];
  references: Reference[];
  unverified: string[];
}
export type NewItem = Said | Runs | Spoken | Note | End | Tools | Given | Facts | Example;
/** An entry of the conversation; a higher revision says that it has changed since it was drawn. */
export type Item = NewItem & { revision: number };

export type Call = ToolCalled & Partial<Omit<ToolAnswered, 'id'>>;
/** `title` is what was run, in the server's words. */
export type Run = RunStarted & {
  title: string;
  version: number;
  result?: RunResult;
  outcome?: RunOutcome;
  inEvidence?: boolean;
};
export interface Turn {
  speaker: string;
  answered: boolean;
  seq: number;
}
export interface Artefact extends FileChange {
  version: number;
  purpose: string;
}
/** What one model cost in the turns of one member. */
export interface Spent {
  who: string;
  model: string;
  answers: number;
  prompt: number;
  cached: number;
  completion: number;
  cost: number;
  seconds: number;
}

const UNKNOWN: ChatView = {
  seq: 0,
  title: '',
  team: '',
  members: [],
  person: '',
  plans: true,
  phase: 'going',
  label: 'starting',
  status: '',
  ending: null,
  question: null,
  rounds: 0,
  round_limit: null,
  plan: null,
  usage: {},
  cost: 0,
  cost_limit: null,
  budgets: [],
};

export class View {
  seq = 0;
  /** Grows with every change, so that it is drawn again. */
  revision = 0;
  /** What the server computes of the chat: never computed here. */
  state = UNKNOWN;
  workspace = '';
  items: Item[] = [];
  events: Event[] = [];
  versions: VersionWritten[] = [];
  reviews = new Map<number, ReviewGiven>();
  runs: Run[] = [];
  running?: Run;
  artefacts: Artefact[] = [];
  spent = new Map<string, Spent>();
  growth: { at: number; cost: number; tokens: number }[] = [];
  turn?: Turn;
  /** The sequence of the end that holds. */
  ended = 0;

  constructor(readonly chat: string) {}

  /** How many requirements of the plan are met, by the newest version as far as it is checked. */
  get met(): number {
    return this.state.plan?.requirements.filter((one) => one.met ?? one.earlier).length ?? 0;
  }

  add(event: Event, text: EventText = {}): void {
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    this.revision += 1;
    this.events.push(event);
    fold(this, event, text);
  }

  update(state: ChatView): void {
    if (state.seq < this.state.seq) return;
    this.revision += 1;
    this.state = state;
  }
}
