// What waits for the person. It stands outside the conversation: nothing that a member writes can look like it.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Delivery } from './delivery';
import type { Question } from './events';
import { choose, confirm } from './confirm';
import { act, chooseTab, draft, link, planDraft, setDraft, standing, trouble, view } from './state';
import { visible } from './text';

export function Questions() {
  const { state, ended, seq } = view.value;
  const now = standing.value;
  const idle = now && !now.conducted && !ended && seq > 0;
  return (
    <div class="dock">
      <Banner idle={Boolean(idle && !state.question)} />
      {state.question && <Asked question={state.question} />}
      {ended > 0 && now && !now.conducted && <Delivery />}
    </div>
  );
}

/** One at a time, the most urgent: without the connection, nothing else can be done. */
function Banner({ idle }: { idle: boolean }) {
  const now = standing.value;
  if (link.value === 'lost')
    return (
      <p class="banner" role="status">
        The connection is lost; trying again. The chat goes on, and nothing is lost.
      </p>
    );
  if (trouble.value)
    return (
      <p class="banner bad" role="alert">
        {trouble.value}{' '}
        <button type="button" class="link" onClick={() => (trouble.value = '')}>
          Close
        </button>
      </p>
    );
  if (now?.trouble)
    return (
      <p class="banner bad" role="alert">
        {now.trouble}
        {now.remedy && `: ${now.remedy}`}
        {idle && <ResumeHere />}
      </p>
    );
  return idle ? <Idle /> : null;
}

function ResumeHere() {
  return (
    <>
      {' '}
      <button type="button" onClick={() => void act('resume')}>
        Resume here
      </button>
    </>
  );
}

function Idle() {
  return (
    <p class="banner" role="status">
      <b>Paused.</b> If another program runs this chat, you can watch and steer it here. To go on with it on
      this page:
      <ResumeHere />
    </p>
  );
}

function Asked({ question }: { question: Question }) {
  return (
    <div class="ask" role="region" aria-label="The team asks">
      {ask(question)}
    </div>
  );
}

function ask(question: Question) {
  const { kind, text } = question;
  switch (kind) {
    case 'packages':
      return <Packages text={text} />;
    case 'review':
      return <Review />;
    case 'step':
      return <Step {...question} />;
    case 'plan':
      return <Plan note={question.note} />;
    case 'ask':
      return <Asks text={text} />;
    default:
      return kind satisfies never;
  }
}

function Button({
  does,
  first,
  children,
}: {
  does: () => void;
  first?: boolean;
  children: ComponentChildren;
}) {
  return (
    <button type="button" class={first ? 'primary' : undefined} onClick={does}>
      {children}
    </button>
  );
}

function Asks({ text }: { text: string }) {
  return (
    <p>
      <b>{visible(text)}</b> Write your answer below.
    </p>
  );
}

function Packages({ text }: { text: string }) {
  const say = (word: string) => () => void act('say', { text: word });
  return (
    <>
      <p>
        <b>{visible(text)}</b> For this work only; the program itself still runs without network.
      </p>
      <div class="buttons">
        <Button first does={say('yes')}>
          Install
        </Button>
        <Button does={say('always')}>Always in this chat</Button>
        <Button does={say('no')}>No</Button>
        <Button does={stop}>Stop</Button>
      </div>
    </>
  );
}

function Review() {
  return (
    <>
      <p>
        <b>v{view.value.versions.length} has been run. Any comment before the review?</b> Type it below, or:
      </p>
      <div class="buttons">
        <Button first does={() => void act('resume')}>
          Continue
        </Button>
        <Button does={accept}>Accept as it is</Button>
        <Button does={stop}>Stop</Button>
      </div>
    </>
  );
}

function Step({ text, can_skip }: Question) {
  const say = (word: string) => () => void act('say', { text: word });
  return (
    <>
      <p>
        <b>{visible(text)}</b>
      </p>
      <div class="buttons">
        <Button first does={() => void act('step')}>
          Do it
        </Button>
        {can_skip && <Button does={say('skip')}>Skip it</Button>}
        <Button does={say('continue')}>Continue without steps</Button>
        <Button does={stop}>Stop</Button>
      </div>
    </>
  );
}

function Plan({ note }: { note?: string }) {
  const [editing, setEditing] = useState(false);
  return (
    <>
      <p>
        <b>Approve this plan?</b> You can also edit it, or write below what should be different.
      </p>
      {note && <p class="quiet">{visible(note)}</p>}
      {editing ? (
        <PlanEditor done={() => setEditing(false)} />
      ) : (
        <div class="buttons">
          <Button first does={approve}>
            Approve
          </Button>
          <Button does={() => setEditing(true)}>Edit</Button>
          <Button does={() => chooseTab('Plan')}>Open in Plan</Button>
          <Button does={stop}>Stop</Button>
        </div>
      )}
    </>
  );
}

/** The version that is on the screen, and no other. */
function accept(): void {
  const newest = view.value.versions.at(-1);
  if (newest) void act('accept', { tree: newest.tree });
}

/** The plan that is on the screen, and no other; words that were not sent yet are not passed over. */
export function approve(): void {
  const { plan } = view.value.state;
  if (!plan) return;
  const does = () => act('approve', { plan: plan.digest });
  const words = draft.value.trim();
  if (planDraft.value)
    return confirm('Your edit of the plan is not saved.', 'Approve the plan without it', does);
  if (!words) return void does();
  const send = async () => {
    if (await act('say', { text: words })) setDraft('');
  };
  choose(`You wrote a message that is not sent: “${words.slice(0, 200)}”`, [
    { title: 'Send it instead', does: send },
    { title: 'Approve without it', does },
  ]);
}

export function stop(): void {
  confirm('Stop this chat? What was made stays, and you can go on later.', 'Stop', () => act('stop'));
}

export function PlanEditor({ done }: { done: () => void }) {
  const [text, setText] = useState(() => view.value.state.plan?.text ?? '');
  const before = view.value.state.plan?.text ?? '';
  useEffect(() => {
    planDraft.value = text !== before;
    return () => {
      planDraft.value = false;
    };
  }, [text, before]);
  const save = async () => {
    if (await act('edit', { text })) done();
  };
  return (
    <div class="editor">
      <label>
        The plan: a numbered line for each requirement, a check below it
        <textarea rows={10} value={text} onInput={(input) => setText(input.currentTarget.value)} />
      </label>
      <div class="buttons">
        <Button first does={() => void save()}>
          Save the plan
        </Button>
        <Button does={done}>Cancel</Button>
      </div>
    </div>
  );
}
