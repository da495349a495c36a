// The top line: which chat, how far, what it cost, and the controls.

import { act, link, open, standing, verdict, view } from './state';
import { help } from './keys';
import { isPerson, shownName } from './people';
import { FINISHED } from './hearing';
import { short } from './text';
import { theme, turnTheme } from './theme';

const CHIPS: Record<string, string> = { claimed: 'not proven', rounds: 'rounds over' };

export function TopBar() {
  const { chat, team, ended, rounds, budget, tokens, turn } = view.value;
  const phase = verdict()?.phase ?? 'ended';
  const limit = budget.rounds === undefined ? 8 : budget.rounds;
  const cost = `$${tokens.cost.toFixed(2)}${budget.cost ? ` / ${budget.cost.toFixed(2)}` : ''}`;
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
      {chat && <h1 class="chat-name">{chat}</h1>}
      {chat && team.name && <span class="quiet wide">team {team.name}</span>}
      {chat && rounds > 0 && (
        <span class="quiet wide">
          round {rounds} of {limit ?? '∞'}
        </span>
      )}
      {chat && (
        <span class={`chip ${ended ? (FINISHED.includes(phase) ? 'good' : 'bad') : ''}`}>
          {ended
            ? (CHIPS[phase] ?? phase.replace('_', ' '))
            : link.value === 'lost'
              ? 'offline'
              : turn
                ? isPerson(turn.speaker, team)
                  ? 'waits for you'
                  : shownName(turn.speaker, team)
                : 'starting'}
        </span>
      )}
      <span class="gap" />
      {chat && (
        <span class="quiet wide" title="tokens in / out, cost">
          {short(tokens.prompt)}/{short(tokens.completion)} tok · {cost}
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

function Controls() {
  const { ended, question, seq } = view.value;
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
        <button type="button" onClick={() => void act('resume')} title="Go on (p)">
          Resume
        </button>
      )}
      {!now.conducted && (
        <button type="button" onClick={() => void act('step')} title="One turn (s)">
          Step
        </button>
      )}
      {now.conducted && now.pausing && (
        <span class="quiet" role="status">
          pausing after this turn
        </span>
      )}
      <button type="button" onClick={() => void act('stop')} title="End the chat now (x)">
        Stop
      </button>
    </span>
  );
}
