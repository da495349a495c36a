// The log itself: every event, filtered by words, each one open to its last field.

import { useState } from 'preact/hooks';
import type { Event } from './events';
import { Scroll } from './scroll';
import { view } from './state';
import { cut, visible } from './text';

const GLANCE = 160;

export function LogTab() {
  const [words, setWords] = useState('');
  const [chosen, setChosen] = useState(0);
  const { events, chat } = view.value;
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = wanted.length
    ? events.filter((event) => wanted.every((word) => searchable(event).includes(word)))
    : events;
  return (
    <div class="log">
      <div class="buttons">
        <input
          type="search"
          aria-label="Filter the log"
          placeholder="Filter: run_finished exit_code"
          value={words}
          onInput={(input) => setWords(input.currentTarget.value)}
        />
        <span class="quiet">
          {shown.length} of {events.length}
        </span>
        <a class="button" href={`/api/chats/${chat}/export/jsonl`} download>
          Download
        </a>
      </div>
      <Scroll
        key={words}
        count={shown.length}
        guess={27}
        name="Events"
        role="list"
        entry={(index) => (
          <Line event={shown[index]!} open={chosen === shown[index]!.seq} choose={setChosen} />
        )}
      />
    </div>
  );
}

function searchable(event: Event): string {
  return `${event.type} ${event.subject ?? ''} ${JSON.stringify(event.data)}`.toLowerCase();
}

function Line({ event, open, choose }: { event: Event; open: boolean; choose: (seq: number) => void }) {
  return (
    <div class="line" role="listitem">
      <button type="button" aria-expanded={open} onClick={() => choose(open ? 0 : event.seq)}>
        <span class="quiet seq">{event.seq}</span> <b>{event.type.replace('septet.', '')}</b>{' '}
        <span class="quiet">
          {event.time.slice(11, 19)} {event.subject ?? ''}{' '}
          {visible(JSON.stringify(event.data).slice(0, GLANCE))}
        </span>
      </button>
      {open && (
        <pre class="output" tabIndex={0}>
          {visible(cut(JSON.stringify(event, null, 2), 40_000))}
        </pre>
      )}
    </div>
  );
}
