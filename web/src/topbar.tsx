// The top line: which chat, how far, what it cost, and the controls.

import { help } from './keys';
import { stop } from './question';
import { act, link, open, paused, standing, view } from './state';
import { short, visible } from './text';
import { theme, turnTheme } from './theme';

export function TopBar() {
  const { chat, state } = view.value;
  const { cost, cost_limit, rounds, round_limit } = state;
  const { prompt: sent = 0, completion: received = 0 } = state.usage;
  return (
    <header class="top">
      <a
        class="brand"
        href="/"
        onClick={(click) => {
          click.preventDefault();
          open('');
        }}
      >
        septet
      </a>
      {chat && (
        <h1 class="chat-name" title={chat}>
          {visible(state.title) || chat} <span class="quiet">{state.title && chat}</span>
        </h1>
      )}
      {chat && state.team && <span class="quiet wide">team {state.team}</span>}
      {chat && rounds > 0 && (
        <span class="quiet rounds">
          round {rounds} of {round_limit ?? '∞'}
        </span>
      )}
      {chat && <Phase />}
      <span class="gap" />
      {chat && link.value !== 'unknown' && (
        <span class="quiet spending" title={`${short(sent)} tokens sent, ${short(received)} received`}>
          {sent + received > 0 && <span class="wide">{short(sent + received)} tokens · </span>}$
          {cost.toFixed(2)}
          {cost_limit ? ` / ${cost_limit.toFixed(2)}` : ''}
        </span>
      )}
      {chat && <Controls />}
      <button
        type="button"
        class="icon"
        aria-label={theme.value === 'dark' ? 'Light colours' : 'Dark colours'}
        title="Colours (d)"
        onClick={turnTheme}
      >
        {theme.value === 'dark' ? '☀' : '☾'}
      </button>
      <button
        type="button"
        class="icon"
        aria-label="Keyboard help"
        title="Keyboard (?)"
        onClick={() => (help.value = true)}
      >
        ?
      </button>
    </header>
  );
}

function Phase() {
  const { label, ending, phase, question } = view.value.state;
  if (link.value === 'unknown') return null;
  const now = standing.value;
  const words = ending
    ? label
    : link.value === 'lost'
      ? 'offline'
      : paused.value && !question
        ? 'paused'
        : now?.pausing
          ? `pausing after ${label}`
          : phase === 'going' && view.value.turn
            ? `${label} at work`
            : label;
  return <span class={`chip ${ending ? (ending.good ? 'good' : 'bad') : ''}`}>{words}</span>;
}

function Controls() {
  const { ended, seq } = view.value;
  const { question } = view.value.state;
  const now = standing.value;
  if (ended || !now || !seq) return null;
  const going = now.conducted && !now.pausing;
  return (
    <span class="controls" role="group" aria-label="Controls">
      {going && !question && (
        <button type="button" onClick={() => void act('pause')} title="Before the next turn (p)">
          Pause
        </button>
      )}
      {!going && (
        <button type="button" onClick={() => void act('resume')} title="Continue (p)">
          Resume
        </button>
      )}
      {!now.conducted && (
        <button type="button" onClick={() => void act('step')} title="One turn (s)">
          Step
        </button>
      )}
      <button type="button" onClick={stop} title="End the chat (x)">
        Stop
      </button>
    </span>
  );
}
