// How each event changes the conversation. What has to be decided about a chat is decided by the server.

import type { Answer, Event, EventText, FileChange, RunStarted, ToolAnswered, ToolCalled } from './events';
import { isPerson, titleOf } from './people';
import { counted } from './text';
import type { Item, NewItem, Note, Run, Runs, Said, View } from './view';

/** One case for each kind of event: a kind that is missing here does not compile. */
export function fold(view: View, event: Event, text: EventText): void {
  const entry = { seq: event.seq, at: event.time };
  const add = (item: NewItem) => void view.items.push({ ...item, revision: 0 });
  const note = (who: string, words: string, tone: Note['tone'] = 'plain', more?: Note['more']) =>
    add({ ...entry, kind: 'note', who, text: words, tone, more });
  switch (event.type) {
    case 'septet.chat_started':
      view.workspace = event.data.workspace;
      return add({ ...entry, kind: 'person', who: 'person', text: event.data.goal, to: '' });
    case 'septet.chat_continued':
      view.ended = 0;
      return note('person', 'Go on');
    case 'septet.chat_ended':
      if (view.ended) return; // the first end counts
      view.ended = event.seq;
      view.turn = view.running = undefined;
      return add({ ...entry, kind: 'end', who: 'septet', text: text.text ?? 'Ended' });
    case 'septet.chat_halted': {
      const why = [event.data.cause, event.data.remedy].filter(Boolean).join(': ');
      return note('septet', `An error stopped the work: ${why}`, 'bad');
    }
    case 'septet.budget_reached': {
      const who = titleOf(event.data.by, view.state);
      return note('septet', `${who} was not asked: a budget would not do for the answer`, 'bad');
    }
    case 'septet.turn_opened':
      view.turn = { speaker: event.data.speaker, answered: false, seq: event.seq };
      unqueue(view);
      view.running = undefined;
      return;
    case 'septet.step_granted':
    case 'septet.snapshot_taken':
    case 'septet.member_briefed':
    case 'septet.delivery_started':
      return;
    case 'septet.stop_requested':
      return note(event.data.by ?? 'person', 'Stop');
    case 'septet.model_answered': {
      const { role, answer } = event.data;
      const { model = '', reasoning = '' } = answer;
      add({ ...entry, kind: 'said', who: role, model, text: answer.text, reasoning });
      if (view.turn) view.turn.answered = true;
      return spend(view, role, answer, event.time);
    }
    case 'septet.reply_refused':
      return amend(view, { refused: event.data.reason });
    case 'septet.person_spoke':
      return add({
        ...entry,
        kind: 'person',
        who: 'person',
        text: event.data.text,
        to: event.data.to ?? '',
        queued: Boolean(view.turn && !view.ended && !isPerson(view.turn.speaker, view.state)),
      });
    case 'septet.work_accepted':
      return note('person', 'Accepted as it is', 'good');
    case 'septet.check_challenged':
    case 'septet.challenge_decided':
      return note(event.data.by, text.text ?? '');
    case 'septet.plan_proposed':
      return amend(view, { plan: { plan: event.data.plan, checks: text.checks ?? [] } });
    case 'septet.plan_approved':
      return note(
        'person',
        event.data.by === 'flag' ? 'The plan was approved beforehand' : 'Plan approved',
        'good',
      );
    case 'septet.speaker_chosen': {
      const next = titleOf(event.data.speaker, view.state);
      const why = event.data.fallback ? ': nobody else could be made out' : '';
      return note(nameOf(view, 'manager'), `${next} goes on${why}`);
    }
    case 'septet.terminated':
      return note(nameOf(view, 'manager'), `The task is resolved: ${event.data.summary}`, 'good');
    case 'septet.facts_changed': {
      const { add: added = [], drop = [] } = event.data.change;
      const words = [...added.map((fact) => `remember: ${fact}`), ...drop.map((fact) => `forget: ${fact}`)];
      return add({ ...entry, kind: 'facts', who: event.data.by, text: words.join('; '), add: added, drop });
    }
    case 'septet.version_written':
      view.versions.push(event.data);
      return amend(view, { version: event.data });
    case 'septet.run_started':
      view.running = runOf(view, event.data, text);
      runsOf(view, event).runs.push(view.running);
      return;
    case 'septet.run_finished':
      return finish(view, event, { ...runOf(view, event.data, text), result: event.data.result });
    case 'septet.evidence_found':
      runsOf(view, event).evidence.push({ ...event.data, text: text.text ?? event.data.detail });
      return;
    case 'septet.review_given':
      view.reviews.set(event.data.version, event.data);
      return amend(view, { review: event.data });
    case 'septet.decision_recorded':
      return note(event.data.by, `${event.data.what}: ${event.data.why}`);
    case 'septet.example_given': {
      const { failure, code = '', source = '', title = '' } = event.data;
      const who = nameOf(view, 'exemplar');
      return add({ ...entry, kind: 'example', who, text: failure, code, source, title });
    }
    case 'septet.tool_called':
      return call(view, event, event.data);
    case 'septet.tool_answered':
      settleCall(view, event.data);
      return keep(view, event.data.changes ?? [], 'a tool');
    case 'septet.data_described':
      return note('septet', `Data: ${event.data.path} (${counted(event.data.size, 'byte')})`);
    case 'septet.answer_given': {
      const { by, text: words, sources = [], references = [], unverified = [] } = event.data;
      return add({ ...entry, kind: 'given', who: by, text: words, sources, references, unverified });
    }
    case 'septet.environment_probed':
      return undefined;
    case 'septet.base_surveyed':
    case 'septet.delivered':
      return text.text ? note('septet', text.text) : undefined;
    case 'septet.base_moved':
      return note('person', text.text ?? '');
    case 'septet.packages_wanted':
      return note(nameOf(view, 'runner'), text.text ?? '');
    case 'septet.packages_decided':
      return note(event.data.by === 'policy' ? 'septet' : 'person', text.text ?? '');
    case 'septet.packages_installed': {
      const { failed = [], output = '' } = event.data.installation;
      const more = output.trim() ? { title: 'What the installer said', text: output } : undefined;
      return text.text
        ? note(nameOf(view, 'runner'), text.text, failed.length ? 'bad' : 'good', more)
        : undefined;
    }
    default:
      return unknown(event, note);
  }
}

/** A newer server's event, in a page that was open before it: named, and whole in the log tab. */
function unknown(event: never, note: (who: string, words: string) => void): void {
  const { type, subject } = event as Event;
  note(subject ?? 'septet', type.replace('septet.', '').replaceAll('_', ' '));
}

/** Whoever has the turn that opens now is told what the person said in the one before. */
function unqueue(view: View): void {
  for (const item of view.items.slice(-50))
    if (item.kind === 'person' && item.queued)
      Object.assign(item, { queued: false, revision: item.revision + 1 });
}

/** The newest thing that a member said in the turn that is open: what it amounted to belongs to it. */
function amend(view: View, change: Partial<Said>): void {
  const last = view.items.findLast((item) => item.kind === 'said');
  if (last?.kind === 'said' && last.seq > (view.turn?.seq ?? 0))
    Object.assign(last, change, { revision: last.revision + 1 });
}

/** The member whose turn it is, if it has that role; else the role's. */
function nameOf(view: View, role: string): string {
  const { members } = view.state;
  const speaker = members.find((one) => one.name === view.turn?.speaker && one.role === role);
  return (speaker ?? members.find((one) => one.role === role))?.name ?? role;
}

function call(view: View, event: Event, called: ToolCalled): void {
  const last = view.items.at(-1);
  if (last?.kind === 'tools' && last.who === called.by) {
    last.calls.push({ ...called });
    last.revision += 1;
  } else {
    const { seq, time: at } = event;
    view.items.push({ kind: 'tools', seq, at, who: called.by, calls: [{ ...called }], revision: 0 });
  }
}

function settleCall(view: View, answered: ToolAnswered): void {
  const { id, text, failed = false, changes = [], summary = '' } = answered;
  for (const item of view.items.slice(-20)) {
    const found = item.kind === 'tools' ? item.calls.find((one) => one.id === id) : undefined;
    if (found) {
      Object.assign(found, { text, failed, changes, summary });
      item.revision += 1;
    }
  }
}

function runsOf(view: View, event: Event): Runs {
  const last = view.items.at(-1);
  if (last?.kind === 'runs') {
    last.revision += 1;
    return last;
  }
  const fresh = {
    kind: 'runs' as const,
    seq: event.seq,
    at: event.time,
    who: view.turn?.speaker ?? 'runner',
    version: view.versions.length,
    runs: [],
    evidence: [],
    revision: 0,
  };
  view.items.push(fresh);
  return fresh;
}

function runOf(view: View, run: RunStarted, text: EventText): Run {
  const { outcome, text: title = run.purpose, in_evidence: inEvidence } = text;
  return { ...run, title, version: view.versions.length, outcome: outcome ?? undefined, inEvidence };
}

function finish(view: View, event: Event, run: Run): void {
  const isBegun = (one: Run) => one.id === run.id && !one.result;
  const item = view.items.findLast(
    (one): one is Item & Runs => one.kind === 'runs' && one.runs.some(isBegun),
  );
  if (item) {
    item.runs[item.runs.findIndex(isBegun)] = run;
    item.revision += 1;
  } else runsOf(view, event).runs.push(run);
  view.running = undefined;
  view.runs.push(run);
  keep(view, run.result?.changes ?? [], run.title);
}

function keep(view: View, changes: FileChange[], purpose: string): void {
  const version = view.versions.length;
  for (const change of changes) {
    if (change.kind !== 'deleted' && change.sha256 && !/(^|\/)(\.|__pycache__)/.test(change.path)) {
      view.artefacts = view.artefacts.filter((one) => one.path !== change.path || one.version !== version);
      view.artefacts.push({ ...change, version, purpose });
    }
  }
}

/** For the table of costs by member and model, and their growth. */
function spend(
  view: View,
  who: string,
  { model = '', usage = {}, seconds = 0, cost }: Answer,
  at: string,
): void {
  const { prompt = 0, cached = 0, completion = 0 } = usage;
  const blank = { who, model, answers: 0, prompt: 0, cached: 0, completion: 0, cost: 0, seconds: 0 };
  const one = view.spent.get(`${who} ${model}`) ?? blank;
  one.answers += 1;
  one.prompt += prompt;
  one.cached += cached;
  one.completion += completion;
  one.cost += cost ?? 0;
  one.seconds += seconds;
  view.spent.set(`${who} ${model}`, one);
  const before = view.growth.at(-1) ?? { cost: 0, tokens: 0 };
  const tokens = before.tokens + prompt + completion;
  view.growth.push({ at: Date.parse(at), cost: before.cost + (cost ?? 0), tokens });
}
