// One entry of the conversation: what somebody said, ran, found or decided.

import { memo } from './memo';
import { Output, Source, useColours } from './code';
import {
  checkText,
  type Evidence,
  type Plan,
  type Review,
  type Run,
  type RunResult,
  type TestReport,
  type Version,
} from './events';
import { Avatar, Calling, roleOf, shownName } from './people';
import { artefact, live, livened, open, pane, tab, type Tab, verdict, view, where } from './state';
import { FINISHED } from './hearing';
import { clock, counted, markdown, visible } from './text';
import { ToolsBody } from './tools';
import type { Example, Facts, Given, Item, Note, Runs, Said, Spoken } from './view';

export const Entry = memo(
  function Entry({ item, index, count }: { item: Item; index: number; count: number; revision: number }) {
    const who = item.kind === 'person' ? 'person' : item.who;
    const { team } = view.value;
    const role = roleOf(who, team);
    return (
      <article
        id={`m${item.seq}`}
        class={`entry ${item.kind} ${where.value.message === item.seq ? 'sought' : ''}`}
        aria-posinset={index + 1}
        aria-setsize={count}
        aria-label={`${shownName(who, team)}, ${clock(item.at)}`}
        tabIndex={-1}
      >
        <Avatar role={role} />
        <div class="bubble">
          <header>
            <b class={`name role-${role}`}>{shownName(who, team)}</b>
            <Calling who={who} team={team} />
            {item.kind === 'person' && item.to && <span class="quiet">to {shownName(item.to, team)}</span>}
            {item.kind === 'said' && item.version && <span class="quiet">v{item.version.number}</span>}
            {item.kind === 'runs' && item.version > 0 && <span class="quiet">v{item.version}</span>}
            {item.kind === 'said' && <span class="quiet model">{item.model}</span>}
            <a
              class="time quiet"
              href={`/chat/${view.value.chat}#m${item.seq}`}
              onClick={(click) => {
                click.preventDefault();
                open(view.value.chat, 0, item.seq);
              }}
            >
              {clock(item.at)}
            </a>
          </header>
          <Body item={item} />
        </div>
      </article>
    );
  },
  (before, after) =>
    before.item === after.item && before.revision === after.revision && before.count === after.count,
);

const MODES = { screen: 'on a screen', server: 'asked as a server', cell: 'in the kernel' };

function Body({ item }: { item: Item }) {
  switch (item.kind) {
    case 'said':
      return <SaidBody item={item} />;
    case 'runs':
      return <RunsBody item={item} />;
    case 'person':
      return <Words item={item} />;
    case 'note':
      return <NoteBody item={item} />;
    case 'tools':
      return <ToolsBody item={item} />;
    case 'given':
      return <GivenBody item={item} />;
    case 'facts':
      return <FactsBody item={item} />;
    case 'example':
      return <ExampleBody item={item} />;
  }
}

function Words({ item }: { item: Spoken }) {
  return <p class="words">{visible(item.text)}</p>;
}

/** An end that promises something is shown as what the log bears out; an earlier one as what it was called. */
function borneOut(item: Note): Pick<Note, 'text' | 'tone'> {
  if (!item.end) return item;
  const { ended } = view.value;
  if (ended?.seq !== item.seq)
    return { text: `Ended: ${item.text.split(':', 1)[0]?.toLowerCase()}`, tone: 'plain' };
  const found = verdict();
  if (!found) return { text: 'Ended', tone: 'plain' };
  return found.phase === ended.reason
    ? item
    : { text: found.status, tone: FINISHED.includes(found.phase) ? 'good' : 'bad' };
}

function NoteBody({ item: noted }: { item: Note }) {
  const item = { ...noted, ...borneOut(noted) };
  return (
    <>
      <p class={`noted ${item.tone}`}>
        {item.tone === 'good' ? '✓ ' : item.tone === 'bad' ? '✗ ' : ''}
        {visible(item.text)}
      </p>
      {item.more && (
        <details class="fold">
          <summary>{item.more.title}</summary>
          <Output text={item.more.text} label={item.more.title} />
        </details>
      )}
    </>
  );
}

function FactsBody({ item }: { item: Facts }) {
  return (
    <>
      {item.add.length > 0 && (
        <>
          <p class="quiet">To be known from now on:</p>
          <ul class="fact-list">
            {item.add.map((fact) => (
              <li key={fact}>{visible(fact)}</li>
            ))}
          </ul>
        </>
      )}
      {item.drop.length > 0 && (
        <>
          <p class="quiet">No longer true:</p>
          <ul class="fact-list">
            {item.drop.map((fact) => (
              <li key={fact}>
                <del>{visible(fact)}</del>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function ExampleBody({ item }: { item: Example }) {
  if (!item.code) return <p class="noted">No example is known for: {visible(item.text)}</p>;
  return (
    <div class="card">
      <h4>
        {visible(item.title) || 'An example'} <span class="quiet">from {visible(item.source)}</span>
      </h4>
      <p class="quiet">for: {visible(item.text)}</p>
      <Source text={item.code.trimEnd()} language="python" />
    </div>
  );
}

function SaidBody({ item }: { item: Said }) {
  const structured = item.plan || item.version || item.review;
  return (
    <>
      {item.reasoning && (
        <details class="fold">
          <summary>Reasoning</summary>
          <p class="words">{visible(item.reasoning)}</p>
        </details>
      )}
      {item.plan && <PlanCard plan={item.plan} />}
      {item.version && <VersionCard version={item.version} />}
      {item.review && <ReviewCard review={item.review} />}
      {structured ? (
        <details class="fold">
          <summary>As written</summary>
          <Markdown text={item.text} />
        </details>
      ) : (
        <Markdown text={item.text} />
      )}
      {item.refused && <p class="noted bad">✗ Refused: {visible(item.refused)}. Asked again.</p>}
    </>
  );
}

function GivenBody({ item }: { item: Given }) {
  return (
    <>
      <Markdown text={item.text} />
      {item.sources.length > 0 && (
        <details class="fold">
          <summary>Where the numbers come from</summary>
          <ul class="evidence">
            {item.sources.map((one) => (
              <li key={one.number}>
                <b>{visible(one.number)}</b> <code>{visible(one.script)}</code>, line {one.line}:{' '}
                {visible(one.text)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

export function Markdown({ text }: { text: string }) {
  const html = markdown(text);
  const place = useColours(html);
  return <div class="markdown" ref={place} dangerouslySetInnerHTML={{ __html: html }} />;
}

function look(which: Tab): void {
  tab.value = which;
  pane.value = 'work';
}

function PlanCard({ plan }: { plan: Plan }) {
  return (
    <div class="card">
      <h4>{counted(plan.items.length, 'requirement')}</h4>
      <ol>
        {plan.items.map((item) => (
          <li key={item.id}>
            {visible(item.text)} <span class="quiet check">{visible(checkText(item.check))}</span>
          </li>
        ))}
      </ol>
      {plan.run && (
        <p class="quiet">
          run: <code>{visible(plan.run)}</code>
        </p>
      )}
      <button type="button" class="link" onClick={() => look('Plan')}>
        Open in Plan
      </button>
    </div>
  );
}

function VersionCard({ version }: { version: Version }) {
  return (
    <div class="card">
      {version.note && <Markdown text={version.note} />}
      {version.answers?.map((one) => (
        <p class="finding" key={one.finding}>
          <b>{one.finding}</b> <span class={one.answer === 'fixed' ? 'good' : 'bad'}>{one.answer}</span>{' '}
          {visible(one.reason ?? '')}
        </p>
      ))}
      <ul class="files">
        {version.files.map((file) => (
          <li key={file.path}>
            <code>{visible(file.path)}</code> <span class="quiet">{file.size} B</span>
          </li>
        ))}
      </ul>
      <button type="button" class="link" onClick={() => open(view.value.chat, version.number)}>
        Open v{version.number} in Code
      </button>
    </div>
  );
}

export function ReviewCard({ review }: { review: Review }) {
  return (
    <div class="card">
      <h4 class={review.verdict === 'accept' ? 'good' : 'bad'}>
        {review.verdict === 'accept' ? '✓ Accepted' : '✗ To be revised'}
      </h4>
      {review.findings?.map((finding) => (
        <p class="finding" key={finding.id}>
          <span class={`badge ${finding.severity ?? 'should'}`}>{finding.severity ?? 'should'}</span>{' '}
          {finding.item && <b>{finding.item}</b>} {visible(finding.text)}{' '}
          {finding.evidence && <code>{visible(finding.evidence)}</code>}
        </p>
      ))}
      {review.remarks?.map((one, index) => (
        <p class="quiet" key={index}>
          You said: {visible(one)}
        </p>
      ))}
      {review.overruled && <p class="noted bad">Overruled by the evidence: {visible(review.overruled)}</p>}
    </div>
  );
}

function RunsBody({ item }: { item: Runs }) {
  return (
    <>
      {item.runs.map((run) => (
        <RunRow run={run} key={run.id} />
      ))}
      {item.evidence.length > 0 && (
        <ul class="evidence">
          {item.evidence.map((one) => (
            <EvidenceRow one={one} key={one.item} />
          ))}
        </ul>
      )}
    </>
  );
}

function EvidenceRow({ one }: { one: Evidence }) {
  return (
    <li class={one.passed ? 'good' : 'bad'}>
      {one.passed ? '✓' : '✗'} <b>{one.item}</b> {visible(one.detail)}
    </li>
  );
}

export function outcome(run: Run): { text: string; good: boolean } {
  const result = run.result;
  if (!result) return { text: 'not finished', good: false };
  const good = result.exit_code === 0 && !result.stopped_by;
  if (run.purpose === 'tests alone') return ALONE[alone(result)];
  const ending = result.stopped_by ? `stopped by the ${result.stopped_by} limit` : `exit ${result.exit_code}`;
  if (!result.tests) return { text: ending, good };
  return {
    text: [ending, counts(result.tests)].filter(Boolean).join(' · '),
    good: good && alone(result) === 'pass' && !result.tests.hooks?.length,
  };
}

const ALONE = {
  pass: { text: 'pass without the program: they prove nothing', good: false },
  fail: { text: 'fail without the program, as they should', good: true },
  unknown: { text: 'did not come to their end without the program: nobody knows', good: false },
};
const WORDS: Record<string, string> = {
  failed: 'failed',
  error: 'error',
  passed: 'passed',
  skipped: 'skipped',
  xfailed: 'expected to fail',
  xpassed: 'passed unexpectedly',
  'not run': 'not run',
};

function counts(tests: TestReport): string {
  const found = (outcome: string) => (tests.cases ?? []).filter((one) => one[1] === outcome).length;
  return Object.keys(WORDS)
    .filter(found)
    .map((outcome) => `${found(outcome)} ${WORDS[outcome]}`)
    .join(', ');
}

/** What became of tests as a whole. A run that was stopped has neither passed nor failed. */
function alone({ tests, stopped_by, exit_code }: RunResult): 'pass' | 'fail' | 'unknown' {
  if (!tests) return stopped_by ? 'unknown' : exit_code === 0 ? 'pass' : 'fail';
  const outcomes = (tests.cases ?? []).map((one) => one[1]);
  if (outcomes.some((one) => one === 'failed' || one === 'error')) return 'fail';
  if (tests.complete === false) return 'unknown';
  return outcomes.includes('passed') ? 'pass' : 'fail';
}

const TAIL = 6_000;

/** The output of a run that is going on, its end first of all. */
function Running({ speaker }: { speaker: string }) {
  livened.value;
  const output = live.value.of('output', speaker);
  return output ? (
    <Output text={output.slice(-TAIL)} label="Output so far" />
  ) : (
    <p class="quiet silent">
      is running
      <span class="dots" aria-hidden="true" />
    </p>
  );
}

/** Links to what the log holds only the beginning and the end of. */
function Whole({ run }: { run: Run }) {
  const kept = [
    { stream: 'stdout', sha: run.result?.stdout_blob },
    { stream: 'stderr', sha: run.result?.stderr_blob },
  ].filter(({ sha }) => sha);
  return (
    <>
      {kept.map(({ stream, sha }) => (
        <p class="silent" key={stream}>
          <a href={artefact(sha!, `${stream}.txt`, 'text')} target="_blank" rel="noopener">
            all of its {stream} ↗
          </a>
        </p>
      ))}
    </>
  );
}

export function RunRow({ run, unfolded }: { run: Run; unfolded?: boolean }) {
  const { text, good } = outcome(run);
  const output = [run.result?.stdout, run.result?.stderr].filter(Boolean).join('\n');
  const pictures =
    run.result?.changes?.filter(
      (change) =>
        change.sha256 && change.kind !== 'deleted' && /\.(png|jpe?g|gif|webp|svg)$/i.test(change.path),
    ) ?? [];
  const title = (
    <>
      <span class={run.result ? (good ? 'good' : 'bad') : 'quiet'}>
        {run.result ? (good ? '✓' : '✗') : '…'}
      </span>{' '}
      <b>{visible(run.purpose)}</b> <code>{visible(run.command)}</code>
      {run.mode && <span class="quiet"> {MODES[run.mode]}</span>}{' '}
      <span class="quiet">{run.result ? `${text} · ${(run.result.seconds ?? 0).toFixed(2)} s` : ''}</span>
    </>
  );
  return (
    <div class="run">
      {output ? (
        <details open={unfolded}>
          <summary>{title}</summary>
          <Output text={output} label={`Output of ${run.purpose}`} />
        </details>
      ) : (
        <p class="silent">{title}</p>
      )}
      <Whole run={run} />
      {!run.result && view.value.running?.id === run.id && (
        <Running speaker={view.value.turn?.speaker ?? ''} />
      )}
      {pictures.map((picture) => (
        <a
          class="picture"
          href={artefact(picture.sha256!, picture.path)}
          target="_blank"
          rel="noopener"
          key={picture.path}
        >
          <img
            loading="lazy"
            src={artefact(picture.sha256!, picture.path)}
            alt={`${picture.path}, made by ${run.purpose}`}
          />
        </a>
      ))}
    </div>
  );
}
