// What answers and runs take, and how much of it the chat and each member may use: counted as the team's own fold does.

import type { Allowance, Answer } from './events';
import { shownName } from './people';
import type { View } from './view';

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
export interface Used {
  tokens: number;
  cost: number;
  seconds: number;
}
export interface Bounded {
  whose: string;
  unit: string;
  used: number;
  limit: number;
}

export function spend(view: View, who: string, answer: Answer, at: string): void {
  const { model = '', usage = {}, seconds = 0 } = answer;
  const { prompt = 0, cached = 0, completion = 0 } = usage;
  const cost = answer.cost ?? 0;
  const one = view.spent.get(`${who} ${model}`) ?? {
    who,
    model,
    answers: 0,
    prompt: 0,
    cached: 0,
    completion: 0,
    cost: 0,
    seconds: 0,
  };
  one.answers += 1;
  one.prompt += prompt;
  one.cached += cached;
  one.completion += completion;
  one.cost += cost;
  one.seconds += seconds;
  view.spent.set(`${who} ${model}`, one);
  use(view, who, { tokens: prompt + completion, cost, seconds });
  const total = view.tokens;
  view.costs.push({ at: Date.parse(at), cost: total.cost, tokens: total.prompt + total.completion });
}

/** Time that went by with a program: that of the member whose turn it is, where it is anybody's. */
export function took(view: View, seconds: number, who?: string): void {
  if (who) use(view, who, { tokens: 0, cost: 0, seconds });
  else view.seconds += seconds;
}

function use(view: View, who: string, more: Used): void {
  const one = view.used.get(who) ?? { tokens: 0, cost: 0, seconds: 0 };
  view.used.set(who, {
    tokens: one.tokens + more.tokens,
    cost: one.cost + more.cost,
    seconds: one.seconds + more.seconds,
  });
  view.seconds += more.seconds;
}

/** Every bound that somebody set, the chat's first, with what is used of it. A chat that goes on gives members as much again. */
export function budgets(view: View): Bounded[] {
  const { prompt, completion, cost } = view.tokens;
  const whole = measures('the chat', view.budget, {
    tokens: prompt + completion,
    cost,
    seconds: view.seconds,
  });
  const own = view.team.members.flatMap((member) =>
    measures(
      shownName(member.name, view.team),
      member.budget ?? {},
      view.used.get(member.name) ?? { tokens: 0, cost: 0, seconds: 0 },
    ),
  );
  return [...whole, ...own];
}

function measures(whose: string, limits: Allowance, used: Used): Bounded[] {
  const all: [keyof Used, string][] = [
    ['tokens', 'tokens'],
    ['cost', '$'],
    ['seconds', 's'],
  ];
  return all.flatMap(([name, unit]) =>
    limits[name] === undefined || limits[name] === null
      ? []
      : [{ whose, unit, used: used[name], limit: limits[name]! }],
  );
}
