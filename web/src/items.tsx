// One entry of the conversation: what somebody said, ran, found or decided.

import { Output, Source, useColours } from './code';
import type { EvidenceFound, ReviewGiven, VersionWritten } from './events';
import { memo } from './memo';
import { Avatar, RoleName, roleOf, titleOf } from './people';
import { artefact, chooseTab, live, open, pane, streamed, type Tab, view, where } from './state';
import { clock, counted, markdown, visible } from './text';
import { ToolsBody } from './tools';
import type { End, Example, Facts, Given, Item, Note, Run, Runs, Said, Spoken } from './view';

export const Entry = memo(
  function Entry({ item, index, count }: { item: Item; index: number; count: number; revision: number }) {
    const { who } = item;
    const { state } = view.value;
    const role = roleOf(who, state);
    return (
      <article
        id={`m${item.seq}`}
        class={`entry ${item.kind} ${where.value.message === item.seq ? 'sought' : ''}`}
        aria-posinset={index + 1}
        aria-setsize={count}
        aria-label={`${titleOf(who, state)}, ${clock(item.at)}`}
        tabIndex={-1}
      >
        <Avatar role={role} />
        <div class="bubble">
          <header>
            <b class={`name role-${role}`}>{titleOf(who, state)}</b>
            <RoleName who={who} state={state} />
            {item.kind === 'person' && item.queued && (
              <span class="badge nice">queued for the next turn</span>
            )}
            {item.kind === 'person' && item.to && <span class="quiet">to {titleOf(item.to, state)}</span>}
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
    case 'end':
      return <EndBody item={item} />;
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

const SIGNS = { good: '✓ ', bad: '✗ ', plain: '' };

function Line({ text, tone }: { text: string; tone: Note['tone'] }) {
  return (
    <p class={`noted ${tone}`}>
      {SIGNS[tone]}
      {visible(text)}
    </p>
  );
}

/** What is stored as the end of a chat is a claim: the server says what the log bears out. */
function EndBody({ item }: { item: End }) {
  const { ended, state } = view.value;
  if (ended !== item.seq || !state.ending) return <Line text={item.text} tone="plain" />;
  return <Line text={state.ending.text} tone={state.ending.good ? 'good' : 'bad'} />;
}

function NoteBody({ item }: { item: Note }) {
  return (
    <>
      <Line text={item.text} tone={item.tone} />
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
      {item.plan && <PlanCard {...item.plan} />}
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
      {item.references.length > 0 && (
        <details class="fold">
          <summary>Lines that it names</summary>
          <ul class="evidence">
            {item.references.map((one) => (
              <li key={`${one.path}:${one.line}`}>
                <code>
                  {visible(one.path)}:{one.line}
                </code>{' '}
                {visible(one.text)}
              </li>
            ))}
          </ul>
        </details>
      )}
      {item.unverified.length > 0 && <p>Not verified: {visible(item.unverified.join('; '))}</p>}
    </>
  );
}

export function Markdown({ text }: { text: string }) {
  const html = markdown(text);
  const place = useColours(html);
  return <div class="markdown" ref={place} dangerouslySetInnerHTML={{ __html: html }} />;
}

function look(which: Tab): void {
  chooseTab(which);
  pane.value = 'work';
}

function PlanCard({ plan, checks }: NonNullable<Said['plan']>) {
  return (
    <div class="card">
      <h4>{counted(plan.items.length, 'requirement')}</h4>
      <ol>
        {plan.items.map((item, index) => (
          <li key={item.id}>
            {visible(item.text)} <span class="quiet check">{visible(checks[index] ?? '')}</span>
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

function VersionCard({ version }: { version: VersionWritten }) {
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

export function ReviewCard({ review }: { review: ReviewGiven }) {
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
      {item.runs
        .filter((run) => !run.inEvidence)
        .map((run) => (
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

function EvidenceRow({ one }: { one: EvidenceFound & { text: string } }) {
  return (
    <li class={one.passed ? 'good' : 'bad'}>
      {one.passed ? '✓' : '✗'} <b>{one.item}</b> {visible(one.text)}
    </li>
  );
}

const TAIL = 6_000;

/** The output of a run that is going on, its end first of all. */
function Running({ speaker }: { speaker: string }) {
  streamed.value;
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

/** Their command is Septet's own, or the project's: the title says enough. */
const TESTS = /^(tests|baseline)/;
const CONTROLS = new Set(['tests alone', 'hollow check', 'check on base', 'tests on base']);

/** Whether a run is over a program that must fail it. */
export function isControl(run: Run): boolean {
  return CONTROLS.has(run.purpose);
}

export function RunRow({ run, unfolded }: { run: Run; unfolded?: boolean }) {
  const { text, good } = run.outcome ?? { text: 'not finished', good: false };
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
      <b title={visible(`${run.id}: ${run.command}`)}>{visible(run.title)}</b>{' '}
      {!TESTS.test(run.purpose) && <code>{visible(run.command)}</code>}
      {run.mode && <span class="quiet"> {MODES[run.mode]}</span>}{' '}
      <span class="quiet">{run.result ? `${text} · ${(run.result.seconds ?? 0).toFixed(2)} s` : ''}</span>
    </>
  );
  return (
    <div class="run">
      {output ? (
        <details open={unfolded}>
          <summary>{title}</summary>
          <Output text={output} label={`Output of ${run.title}`} />
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
            alt={`${picture.path}, made by ${run.title}`}
          />
        </a>
      ))}
    </div>
  );
}
