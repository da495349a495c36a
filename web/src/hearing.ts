// How each event changes what the page shows; the names and rules are those of the team's own fold.

import type { Event, FileChange, Run } from './events';
import { spend, took } from './spending';
import { counted } from './text';
import type { Fresh, Note, Runs, Said, View } from './view';

export function put(view: View, fresh: Fresh): void {
  view.items.push({ ...fresh, revision: 0 });
}

export function note(
  view: View,
  event: Event,
  who: string,
  text: string,
  tone: Note['tone'] = 'plain',
  more?: Note['more'],
): void {
  put(view, { kind: 'note', seq: event.seq, at: event.time, who, text, tone, more });
}

/** The newest thing that a member said in the turn that is open: what it amounted to belongs to it. */
function amend(view: View, change: Partial<Said>): void {
  const last = view.items.findLast((item) => item.kind === 'said');
  if (last?.kind === 'said' && last.seq > (view.turn?.seq ?? 0))
    Object.assign(last, change, { revision: last.revision + 1 });
}

export function hearTalk(view: View, event: Event): boolean {
  switch (event.type) {
    case 'septet.model_answered': {
      const { role, answer } = event.data;
      put(view, {
        kind: 'said',
        seq: event.seq,
        at: event.time,
        who: role,
        model: answer.model ?? '',
        text: answer.text,
        reasoning: answer.reasoning ?? '',
      });
      if (view.turn) view.turn.answered = true;
      spend(view, role, answer, event.time);
      return true;
    }
    case 'septet.reply_refused':
      amend(view, { refused: event.data.reason });
      view.refusedTurns.set(event.data.role, (view.refusedTurns.get(event.data.role) ?? 0) + 1);
      return true;
    case 'septet.person_spoke':
      view.remarks += 1;
      replied(view);
      put(view, {
        kind: 'person',
        seq: event.seq,
        at: event.time,
        text: event.data.text,
        to: event.data.to ?? '',
      });
      return true;
    case 'septet.plan_proposed':
      view.plan = event.data.plan;
      view.planSeq = event.seq;
      view.approved = false;
      view.remarks = unheard(view);
      if (view.turn) view.turn.settled = true;
      amend(view, { plan: event.data.plan });
      return true;
    case 'septet.work_accepted':
      replied(view);
      note(view, event, 'person', 'Accepted as it is', 'good');
      return true;
    case 'septet.plan_approved':
      view.approved = true;
      replied(view);
      note(
        view,
        event,
        'person',
        event.data.by === 'flag' ? 'The plan was approved beforehand' : 'Plan approved',
        'good',
      );
      return true;
    default:
      return false;
  }
}

export function hearWork(view: View, event: Event): boolean {
  switch (event.type) {
    case 'septet.version_written': {
      const before = view.versions.at(-1);
      view.versions.push(event.data);
      view.remarks = unheard(view);
      if (before?.tree !== event.data.tree) view.evidence = new Map();
      amend(view, { version: event.data });
      return true;
    }
    case 'septet.run_started':
      view.running = event.data;
      runsOf(view, event).runs.push(event.data);
      return true;
    case 'septet.run_finished':
      finish(view, event, event.data);
      return true;
    case 'septet.evidence_found': {
      view.evidence.set(event.data.item, event.data);
      runsOf(view, event).evidence.push(event.data);
      return true;
    }
    case 'septet.review_given':
      view.reviews.set(event.data.version, event.data);
      view.remarks = unheard(view);
      amend(view, { review: event.data });
      return true;
    case 'septet.decision_recorded':
      note(view, event, event.data.by, `${event.data.what}: ${event.data.why}`);
      return true;
    default:
      return false;
  }
}

export function hearChat(view: View, event: Event): boolean {
  switch (event.type) {
    case 'septet.chat_started':
      Object.assign(view, {
        goal: event.data.goal,
        team: event.data.team,
        budget: event.data.team.budget ?? {},
        workspace: event.data.workspace,
      });
      put(view, { kind: 'person', seq: event.seq, at: event.time, text: event.data.goal, to: '' });
      return true;
    case 'septet.chat_continued':
      Object.assign(view, { budget: event.data.budget, ended: undefined, stopping: false, used: new Map() });
      note(view, event, 'person', 'Go on');
      return true;
    case 'septet.chat_ended':
      if (view.ended) return true; // the first end counts, as on the server
      view.ended = { reason: event.data.reason, detail: event.data.detail ?? '', seq: event.seq };
      view.turn = view.running = undefined;
      const finished = FINISHED.includes(event.data.reason);
      put(view, {
        kind: 'note',
        seq: event.seq,
        at: event.time,
        who: 'septet',
        text: ending(event.data.reason, event.data.detail ?? ''),
        tone: finished ? 'good' : 'bad',
        end: finished,
      });
      return true;
    case 'septet.turn_opened':
      view.turns.set(event.data.speaker, (view.turns.get(event.data.speaker) ?? 0) + 1);
      view.turn = {
        speaker: event.data.speaker,
        heard: view.remarks,
        answered: false,
        settled: false,
        seq: event.seq,
      };
      view.running = undefined;
      return true;
    case 'septet.step_granted':
      view.steps += 1;
      replied(view);
      return true;
    case 'septet.stop_requested':
      view.stopping = true;
      note(view, event, event.data.by ?? 'person', 'Stop');
      return true;
    default:
      return false;
  }
}

export function hearTools(view: View, event: Event): boolean {
  switch (event.type) {
    case 'septet.tool_called': {
      const last = view.items.at(-1);
      if (last?.kind === 'tools' && last.who === event.data.by) {
        last.calls.push({ ...event.data });
        last.revision += 1;
      } else
        put(view, {
          kind: 'tools',
          seq: event.seq,
          at: event.time,
          who: event.data.by,
          calls: [{ ...event.data }],
        });
      return true;
    }
    case 'septet.tool_answered':
      settleCall(view, event.data);
      keep(view, event.data.changes ?? [], 'a tool');
      return true;
    case 'septet.data_described':
      note(view, event, 'septet', `Data: ${event.data.path} (${counted(event.data.size, 'byte')})`);
      return true;
    case 'septet.answer_given':
      view.remarks = unheard(view);
      put(view, {
        kind: 'given',
        seq: event.seq,
        at: event.time,
        who: event.data.by,
        text: event.data.text,
        ground: event.data.ground,
        sources: event.data.sources ?? [],
      });
      return true;
    default:
      return false;
  }
}

const SILENT = new Set(['septet.snapshot_taken']);

/** An event that this page does not know yet is at least named; the log tab has all of it. */
export function hearOther(view: View, event: Event): void {
  if (!SILENT.has(event.type))
    note(view, event, event.subject ?? 'septet', event.type.replace('septet.', '').replaceAll('_', ' '));
}

function settleCall(
  view: View,
  answer: { id: string; text: string; failed?: boolean; changes?: FileChange[] },
): void {
  for (const item of view.items.slice(-20)) {
    const call = item.kind === 'tools' ? item.calls.find((one) => one.id === answer.id) : undefined;
    if (call) {
      Object.assign(call, {
        text: answer.text,
        failed: answer.failed ?? false,
        changes: answer.changes ?? [],
      });
      item.revision += 1;
    }
  }
}

/** Whatever the person says settles a turn that was the person's. */
export function replied(view: View): void {
  if (view.turn?.speaker === 'proxy') view.turn.settled = true;
}

function unheard(view: View): number {
  return Math.max(0, view.remarks - (view.turn?.heard ?? 0));
}

function runsOf(view: View, event: Event): Runs {
  const last = view.items.at(-1);
  if (last?.kind === 'runs') {
    last.revision += 1;
    return last;
  }
  const fresh: Runs & { revision: number } = {
    kind: 'runs',
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

function finish(view: View, event: Event, run: Run): void {
  const group = runsOf(view, event);
  const begun = group.runs.findLastIndex((one) => one.id === run.id && !one.result);
  if (begun >= 0) group.runs[begun] = run;
  else group.runs.push(run);
  view.running = undefined;
  view.runs.push(run);
  took(view, run.result?.seconds ?? 0, view.turn?.speaker);
  keep(view, run.result?.changes ?? [], run.purpose);
}

function keep(view: View, changes: FileChange[], purpose: string): void {
  for (const change of changes) {
    if (change.kind !== 'deleted' && change.sha256 && !/(^|\/)(\.|__pycache__)/.test(change.path)) {
      view.made = view.made.filter((one) => one.path !== change.path || one.version !== view.versions.length);
      view.made.push({ ...change, version: view.versions.length, purpose });
    }
  }
}

/** Ends that promise something; what is stored has to be borne out by the log. */
export const FINISHED = ['done', 'accepted', 'answered', 'rounds'];

const ENDINGS: Record<string, string> = {
  done: 'Done: all checks passed',
  accepted: 'Accepted by the person',
  claimed: 'Claimed, not proven',
  answered: 'Answered',
  rounds: 'Rounds over',
  bound: 'Stopped unfinished: a bound was reached',
  no_progress: 'Stopped unfinished: no progress',
  error: 'Stopped unfinished: an error',
  stopped: 'Stopped by the person',
};

function ending(reason: string, detail: string): string {
  const words = ENDINGS[reason] ?? `Ended: ${reason}`;
  return detail && reason !== 'done' && reason !== 'stopped' ? `${words} (${detail})` : words;
}
