// What a chat's log adds up to for the eye: the same fold as the team's own, kept as what the page shows.

import { hearGroup, hearPackages } from './gathering';
import type {
  Budget,
  Event,
  Evidence,
  FileChange,
  Plan,
  Review,
  Run,
  Source,
  Team,
  ToolCall,
  Version,
} from './events';
import { hearChat, hearOther, hearTalk, hearTools, hearWork } from './hearing';
import { isPerson } from './people';
import type { Spent, Used } from './spending';

export interface Said {
  kind: 'said';
  seq: number;
  at: string;
  who: string;
  model: string;
  text: string;
  reasoning: string;
  plan?: Plan;
  version?: Version;
  review?: Review;
  refused?: string;
}
export interface Runs {
  kind: 'runs';
  seq: number;
  at: string;
  who: string;
  version: number;
  runs: Run[];
  evidence: Evidence[];
}
export interface Spoken {
  kind: 'person';
  seq: number;
  at: string;
  text: string;
  to: string;
}
export interface Note {
  kind: 'note';
  seq: number;
  at: string;
  who: string;
  text: string;
  tone: 'plain' | 'good' | 'bad';
  end?: boolean;
  more?: { title: string; text: string };
}
export interface Facts {
  kind: 'facts';
  seq: number;
  at: string;
  who: string;
  text: string;
  add: string[];
  drop: string[];
}
export interface Example {
  kind: 'example';
  seq: number;
  at: string;
  who: string;
  text: string;
  code: string;
  source: string;
  title: string;
}
export interface Tools {
  kind: 'tools';
  seq: number;
  at: string;
  who: string;
  calls: ToolCall[];
}
export interface Given {
  kind: 'given';
  seq: number;
  at: string;
  who: string;
  text: string;
  ground: string;
  sources: Source[];
}
export type Fresh = Said | Runs | Spoken | Note | Tools | Given | Facts | Example;
export type Item = Fresh & { revision: number };

export interface Turn {
  speaker: string;
  heard: number;
  answered: boolean;
  settled: boolean;
  seq: number;
}
export interface Made extends FileChange {
  version: number;
  purpose: string;
}
export interface Question {
  kind: 'plan' | 'step' | 'review' | 'packages';
  seq: number;
}

export class View {
  seq = 0;
  goal = '';
  team: Team = { name: '', members: [] };
  budget: Budget = {};
  workspace = '';
  items: Item[] = [];
  events: Event[] = [];
  plan?: Plan;
  planSeq = 0;
  approved = false;
  versions: Version[] = [];
  reviews = new Map<number, Review>();
  runs: Run[] = [];
  running?: Run;
  evidence = new Map<string, Evidence>();
  made: Made[] = [];
  spent = new Map<string, Spent>();
  used = new Map<string, Used>();
  seconds = 0;
  costs: { at: number; cost: number; tokens: number }[] = [];
  wanted: string[] = [];
  turn?: Turn;
  turns = new Map<string, number>();
  refusedTurns = new Map<string, number>();
  steps = 0;
  remarks = 0;
  stopping = false;
  ended?: { reason: string; detail: string; seq: number };

  constructor(readonly chat: string) {}

  /** A reply that could not be used is no round. */
  get rounds(): number {
    return (this.turns.get('coder') ?? 0) - (this.refusedTurns.get('coder') ?? 0);
  }
  get tokens(): { prompt: number; cached: number; completion: number; cost: number } {
    const all = [...this.spent.values()];
    const sum = (pick: (one: Spent) => number) => all.reduce((total, one) => total + pick(one), 0);
    return {
      prompt: sum((one) => one.prompt),
      cached: sum((one) => one.cached),
      completion: sum((one) => one.completion),
      cost: sum((one) => one.cost),
    };
  }
  get met(): number {
    return this.plan ? this.plan.items.filter((item) => this.isMet(item.id)).length : 0;
  }

  isMet(id: string): boolean | undefined {
    const item = this.plan?.items.find((one) => one.id === id);
    if (!item?.check || item.check.type === 'judged') {
      const review = this.reviews.get(this.versions.length);
      return review && review.verdict === 'accept';
    }
    return this.evidence.get(id)?.passed;
  }

  /** What the team wants to know from the person right now. */
  get question(): Question | undefined {
    if (this.ended || !this.turn || !isPerson(this.turn.speaker, this.team)) return undefined;
    if (this.team.packages === 'ask' && this.wanted.length) return { kind: 'packages', seq: this.seq };
    if (this.plan && !this.approved) return this.remarks ? undefined : { kind: 'plan', seq: this.planSeq };
    const taken = [...this.turns].reduce((sum, [who, count]) => sum + (who === 'proxy' ? 0 : count), 0);
    if (this.team.stepwise && this.steps <= taken) return { kind: 'step', seq: this.seq };
    return this.versions.length && !this.turn.settled ? { kind: 'review', seq: this.seq } : undefined;
  }

  hear(event: Event): void {
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    this.events.push(event);
    hearTalk(this, event) ||
      hearWork(this, event) ||
      hearChat(this, event) ||
      hearTools(this, event) ||
      hearGroup(this, event) ||
      hearPackages(this, event) ||
      hearOther(this, event);
  }
}
