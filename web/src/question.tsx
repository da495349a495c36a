// What waits for the person. It stands outside the conversation: nothing that a member writes can look like it.

import { useState } from 'preact/hooks';
import { planText } from './events';
import { act, link, standing, tab, trouble, view } from './state';

export function Question() {
  const { question, ended } = view.value;
  const now = standing.value;
  const idle = now && !now.conducted && !ended && view.value.seq > 0;
  return (
    <div class="dock">
      {link.value === 'lost' && (
        <p class="banner" role="status">
          The connection is lost; trying again. Nothing is lost, the log goes on.
        </p>
      )}
      {trouble.value && (
        <p class="banner bad" role="alert">
          {trouble.value}{' '}
          <button type="button" class="link" onClick={() => (trouble.value = '')}>
            Close
          </button>
        </p>
      )}
      {now?.trouble && (
        <p class="banner bad" role="alert">
          {now.trouble}
          {now.remedy && `: ${now.remedy}`}
        </p>
      )}
      {question ? (
        <Asked kind={question.kind} seq={question.seq} />
      ) : (
        idle && (
          <p class="banner" role="status">
            This page does not conduct the chat now. If another program does, watch and steer it here; else:{' '}
            <button type="button" onClick={() => void act('resume')}>
              Resume here
            </button>
          </p>
        )
      )}
    </div>
  );
}

function Packages() {
  const say = (text: string) => () => void act('say', { text });
  return (
    <div class="ask" role="region" aria-label="The team asks">
      <p>
        <b>Install {view.value.wanted.join(', ')}?</b> For this work only; the program itself still runs
        without network.
      </p>
      <div class="buttons">
        <button type="button" class="primary" onClick={say('yes')}>
          Install
        </button>
        <button type="button" onClick={say('always')}>
          Always in this chat
        </button>
        <button type="button" onClick={say('no')}>
          No
        </button>
        <button type="button" onClick={() => void act('stop')}>
          Stop
        </button>
      </div>
    </div>
  );
}

function Asked({ kind, seq }: { kind: 'plan' | 'step' | 'review' | 'packages'; seq: number }) {
  const [editing, setEditing] = useState(false);
  if (kind === 'packages') return <Packages />;
  if (kind === 'review') {
    return (
      <div class="ask" role="region" aria-label="The team asks">
        <p>
          <b>v{view.value.versions.length} has been run. Anything to say before the review?</b> Type it below,
          or:
        </p>
        <div class="buttons">
          <button type="button" class="primary" onClick={() => void act('resume')}>
            Go on
          </button>
          <button type="button" onClick={() => void act('accept')}>
            Accept as it is
          </button>
          <button type="button" onClick={() => void act('stop')}>
            Stop
          </button>
        </div>
      </div>
    );
  }
  if (kind === 'step') {
    return (
      <div class="ask" role="region" aria-label="The team asks">
        <p>
          <b>Take the next step?</b>
        </p>
        <div class="buttons">
          <button type="button" class="primary" onClick={() => void act('step')}>
            Do it
          </button>
          <button type="button" onClick={() => void act('stop')}>
            Stop
          </button>
        </div>
      </div>
    );
  }
  return (
    <div class="ask" role="region" aria-label="The team asks">
      <p>
        <b>Is this the plan?</b> Approve it, change it, or say below what should be different.
      </p>
      {editing ? (
        <PlanEditor done={() => setEditing(false)} />
      ) : (
        <div class="buttons">
          <button type="button" class="primary" id="approve" onClick={() => void act('approve', { seq })}>
            Approve
          </button>
          <button type="button" onClick={() => setEditing(true)}>
            Edit
          </button>
          <button type="button" onClick={() => (tab.value = 'Plan')}>
            Look at it
          </button>
          <button type="button" onClick={() => void act('stop')}>
            Stop
          </button>
        </div>
      )}
    </div>
  );
}

export function PlanEditor({ done }: { done: () => void }) {
  const [text, setText] = useState(() => (view.value.plan ? planText(view.value.plan) : ''));
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
        <button type="button" class="primary" onClick={() => void save()}>
          Save the plan
        </button>
        <button type="button" onClick={done}>
          Leave it
        </button>
      </div>
    </div>
  );
}
