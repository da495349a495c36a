// Where the person types: an answer where the team asks, else a word that steers the next turn.

import { useState } from 'preact/hooks';
import { isPerson, titleOf } from './people';
import { act, draft, setDraft, view } from './state';

export function Composer() {
  const text = draft.value;
  const [to, setTo] = useState('');
  const { state, ended } = view.value;
  const members = state.members.filter((member) => !isPerson(member.name, state));
  const send = async () => {
    if (!text.trim()) return;
    if (await act('say', { text, ...(to && { to }) })) setDraft('');
  };
  const typed = (key: KeyboardEvent) => {
    if (key.key === 'Enter' && !key.shiftKey && !key.isComposing) {
      key.preventDefault();
      void send();
    }
  };
  const hints = { plan: 'Say what should be different …', ask: 'Your answer …' };
  const kind = state.question?.kind;
  const hint =
    kind === 'plan' || kind === 'ask' ? hints[kind] : ended ? 'Ask for more …' : 'Steer the next turn …';
  return (
    <form
      class="composer"
      onSubmit={(submit) => {
        submit.preventDefault();
        void send();
      }}
    >
      <label class="to">
        to{' '}
        <select value={to} onChange={(change) => setTo(change.currentTarget.value)}>
          <option value="">team</option>
          {members.map((member) => (
            <option value={member.name} key={member.name}>
              @{titleOf(member.name, state)}
            </option>
          ))}
        </select>
      </label>
      <textarea
        id="composer"
        aria-label="Message to the team"
        rows={1}
        placeholder={hint}
        value={text}
        onInput={(input) => setDraft(input.currentTarget.value)}
        onKeyDown={typed}
      />
      <button type="submit" class="primary" disabled={!text.trim()}>
        Send
      </button>
    </form>
  );
}
