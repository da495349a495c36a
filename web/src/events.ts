// The envelope of every surface, as it comes over the socket. Fields that have their default are left out.

export interface Envelope<T extends string = string, D = unknown> {
  id: string;
  seq: number;
  type: T;
  time: string;
  subject?: string;
  data: D;
}

export interface Allowance { tokens?: number | null; cost?: number | null; seconds?: number | null }
export interface Member { name: string; role: string; title?: string; model?: string[]; budget?: Allowance }
export interface Budget extends Allowance { rounds?: number | null }
export interface Team { name: string; members: Member[]; floor?: string; budget?: Budget; approve?: string; stepwise?: boolean; packages?: string; network?: string | string[] }
export interface Check { type: string; target?: string; command?: string; prints?: string; path?: string; by?: string }
export interface Requirement { id: string; text: string; check?: Check }
export interface Plan { items: Requirement[]; run?: string }
export interface FileRef { path: string; sha256: string; size: number }
export interface FileChange { path: string; kind: 'new' | 'changed' | 'deleted'; size?: number; sha256?: string }
export interface Usage { prompt?: number; cached?: number; completion?: number }
export interface Answer { text: string; model?: string; reasoning?: string; stop?: string; usage?: Usage; cost?: number | null; seconds?: number }
export interface TestReport { cases?: [id: string, outcome: string, phase: string, seconds: number][]; complete?: boolean; hooks?: string[] }
export interface RunResult { tests?: TestReport; exit_code: number; stdout?: string; stderr?: string; stdout_blob?: string; stderr_blob?: string; seconds?: number; stopped_by?: string; changes?: FileChange[]; rung?: string }
export interface Run { id: string; purpose: string; command: string; tree: string; mode?: 'screen' | 'server' | 'cell'; result?: RunResult }
export interface Missing { distributions?: string[]; unknown?: string[] }
export interface Installation { installed?: string[]; failed?: string[]; why?: string; output?: string; seconds?: number }
export interface Evidence { item: string; check: Check; passed: boolean; detail: string; tree: string; run?: string }
export interface Finding { id: string; text: string; item?: string; severity?: string; evidence?: string }
export interface Review { version: number; tree: string; verdict: 'accept' | 'revise'; findings?: Finding[]; overruled?: string; remarks?: string[] }
export interface Source { number: string; script: string; line: number; text: string }
export interface ToolCall { id: string; by: string; name: string; arguments: string; text?: string; failed?: boolean; changes?: FileChange[] }
export interface FindingAnswer { finding: string; answer: 'fixed' | 'refused' | 'unanswered'; reason?: string }
export interface Version { number: number; files: FileRef[]; tree: string; note?: string; answers?: FindingAnswer[] }

export type Event =
  | Envelope<'septet.chat_started', { goal: string; team: Team; workspace: string }>
  | Envelope<'septet.chat_continued', { budget: Budget }>
  | Envelope<'septet.chat_ended', { reason: string; detail?: string; by?: string }>
  | Envelope<'septet.budget_reached', { by: string; why: string }>
  | Envelope<'septet.chat_halted', { cause: string; remedy?: string }>
  | Envelope<'septet.turn_opened', { speaker: string }>
  | Envelope<'septet.step_granted', object>
  | Envelope<'septet.stop_requested', { by?: string }>
  | Envelope<'septet.model_answered', { role: string; answer: Answer }>
  | Envelope<'septet.reply_refused', { role: string; reason: string }>
  | Envelope<'septet.person_spoke', { text: string; to?: string }>
  | Envelope<'septet.plan_proposed', { plan: Plan }>
  | Envelope<'septet.plan_approved', { plan: string; by?: string }>
  | Envelope<'septet.version_written', Version>
  | Envelope<'septet.run_started', Run>
  | Envelope<'septet.run_finished', Run & { result: RunResult }>
  | Envelope<'septet.evidence_found', Evidence>
  | Envelope<'septet.review_given', Review>
  | Envelope<'septet.decision_recorded', { by: string; what: string; why: string; case?: string }>
  | Envelope<'septet.work_accepted', object>
  | Envelope<'septet.example_given', { failure: string; code?: string; source?: string; title?: string }>
  | Envelope<'septet.facts_changed', { by: string; change: { add?: string[]; drop?: string[] } }>
  | Envelope<'septet.speaker_chosen', { speaker: string; fallback?: boolean }>
  | Envelope<'septet.terminated', { summary: string }>
  | Envelope<'septet.tool_called', ToolCall>
  | Envelope<'septet.tool_answered', { id: string; text: string; failed?: boolean; changes?: FileChange[] }>
  | Envelope<'septet.snapshot_taken', { number: number; entries: number; note?: string }>
  | Envelope<'septet.data_described', { path: string; size: number; card: string }>
  | Envelope<'septet.packages_wanted', { missing: Missing }>
  | Envelope<'septet.packages_decided', { names: string[]; allowed: boolean; always?: boolean; by?: string }>
  | Envelope<'septet.packages_installed', { installation: Installation }>
  | Envelope<'septet.answer_given', { by: string; text: string; ground: string; sources?: Source[] }>;

export function checkText(check?: Check): string {
  switch (check?.type) {
    case 'tests': return `tests ${check.target}`;
    case 'command': return `command ${check.command}${check.prints ? ` => ${check.prints}` : ''}`;
    case 'file': return `file ${check.path}`;
    case 'picture': return `picture ${check.path}`;
    case 'window': return 'window';
    case 'serves': return `serves ${check.path}${check.prints ? ` => ${check.prints}` : ''}`;
    default: return `judged ${check?.by ?? 'reviewer'}`;
  }
}

export function planText(plan: Plan): string {
  const lines = plan.items.flatMap((item, index) => [`${index + 1}. ${item.text}`, `   check: ${checkText(item.check)}`]);
  return [...lines, ...(plan.run ? [`run: ${plan.run}`] : [])].join('\n') + '\n';
}
