// The chats, a search over all their words, and who is in the team.

import { useEffect, useState } from 'preact/hooks';
import type { Summary } from './events';
import { Avatar, RoleName, titleOf } from './people';
import { chats, open, paused, view, where } from './state';
import { visible } from './text';
import { get, type Hit, type Person } from './connection';

const MARKS: Record<Summary['phase'], string> = {
  going: '●',
  waiting: '◆',
  done: '✓',
  accepted: '✓',
  answered: '✓',
  rounds: '✓',
  claimed: '✗',
  challenged: '◆',
  stopped: '■',
  bound: '■',
  no_progress: '■',
  error: '✗',
  damaged: '✗',
};
const SHOWN = 200;

export function Sidebar() {
  const [words, setWords] = useState('');
  const [hits, setHits] = useState<Hit[]>();
  useEffect(() => {
    if (!words.trim()) return setHits(undefined);
    let wanted = true; // an answer that comes late belongs to words that are not there any more
    const show = (found: Hit[]) => {
      if (wanted) setHits(found);
    };
    const timer = setTimeout(
      () => void get<Hit[]>(`/api/search?q=${encodeURIComponent(words)}`).then(show, () => show([])),
      150,
    );
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [words]);
  const known = chats.value ?? [];
  return (
    <nav class="side" aria-label="Chats">
      <div class="side-head">
        <button type="button" class="primary" onClick={() => open('')}>
          New chat
        </button>
        <input
          id="search"
          type="search"
          aria-label="Search all chats"
          placeholder="Search"
          value={words}
          onInput={(input) => setWords(input.currentTarget.value)}
        />
      </div>
      {hits ? (
        <Hits hits={hits} />
      ) : (
        <ul class="chats">
          {known.slice(0, SHOWN).map((one) => (
            <ChatRow one={one} key={one.chat} />
          ))}
          {chats.value && !known.length && <li class="empty">No chats yet.</li>}
          {known.length >= SHOWN && <li class="quiet">Search finds older chats.</li>}
        </ul>
      )}
      <Members />
    </nav>
  );
}

function ChatRow({ one }: { one: Summary }) {
  return (
    <li>
      <a
        href={`/chat/${one.chat}`}
        aria-current={where.value.chat === one.chat ? 'page' : undefined}
        onClick={(click) => {
          click.preventDefault();
          open(one.chat);
        }}
      >
        <span class={`mark ${one.phase}`} aria-hidden="true">
          {MARKS[one.phase]}
        </span>
        <span class="chat-title">
          {visible(one.title) || one.chat}
          <span class="sr">, {one.status}</span>
        </span>
        <span class="quiet">{when(one.changed)}</span>
        <span class="quiet goal">
          {one.chat}
          {one.items > 0 && ` · ${one.met}/${one.items} met`}
        </span>
      </a>
    </li>
  );
}

function when(seconds: number): string {
  const date = new Date(seconds * 1000);
  const hours = (Date.now() - date.getTime()) / 3_600_000;
  if (hours < 12) return date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  return date.toLocaleDateString(
    'en-GB',
    hours < 144 ? { weekday: 'short' } : { day: 'numeric', month: 'short' },
  );
}

function Hits({ hits }: { hits: Hit[] }) {
  return (
    <ul class="chats" aria-label="Found">
      {!hits.length && <li class="empty">No messages found.</li>}
      {hits.map((hit) => (
        <li key={`${hit.chat}:${hit.seq}`}>
          <a
            href={`/chat/${hit.chat}#m${hit.seq}`}
            onClick={(click) => {
              click.preventDefault();
              open(hit.chat, 0, hit.seq);
            }}
          >
            <span class="mark" aria-hidden="true">
              ⌕
            </span>
            <span class="chat-title">{hit.chat}</span>
            <span class="quiet">{hit.who}</span>
            <span class="quiet goal">{visible(hit.words)}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

const LOOK = 3000;
const GONE = 6;

function usePeople(): Person[] | undefined {
  const [people, setPeople] = useState<Person[]>();
  useEffect(() => {
    let timer = 0;
    const look = () =>
      void get<Person[] | null>('/api/people').then(
        (found) => {
          if (!found) return; // everybody is here
          setPeople(found);
          timer = window.setTimeout(look, LOOK);
        },
        () => {
          timer = window.setTimeout(look, LOOK);
        },
      );
    look();
    return () => clearTimeout(timer);
  }, []);
  return people;
}

function places(people: Person[], role: string): string {
  const found = people.filter((one) => one.silent < GONE && one.presence.roles?.includes(role));
  return (
    found
      .map(({ presence }) =>
        presence.name === presence.machine
          ? `on ${presence.machine}`
          : `${presence.name} on ${presence.machine}`,
      )
      .join(', ') || 'nobody is there'
  );
}

function People({ people }: { people: Person[] }) {
  const chat = view.value.chat;
  return (
    <section class="members" aria-label="Who is where">
      <h2>Who is where</h2>
      {!people.length && <p class="quiet">Nobody has joined.</p>}
      <ul>
        {people.map(({ presence, silent }) => {
          const does =
            presence.kind === 'member'
              ? (presence.roles ?? []).join(', ')
              : presence.chats?.includes(chat)
                ? 'conducts this chat'
                : presence.chats?.length
                  ? `conducts ${presence.chats.length}`
                  : 'watches';
          const place = presence.name === presence.machine ? '' : ` · ${presence.machine}`;
          const sign =
            silent < GONE ? <span class="sr">, is there</span> : ` · silent for ${Math.round(silent)} s`;
          return (
            <li key={`${presence.machine} ${presence.pid} ${presence.kind}`}>
              <span aria-hidden="true">{silent < GONE ? '●' : '○'}</span> {presence.name}{' '}
              <span class="quiet">
                {does}
                {place}
                {sign}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Members() {
  const people = usePeople();
  return (
    <>
      {people && <People people={people} />}
      <Team people={people} />
    </>
  );
}

function Team({ people }: { people?: Person[] }) {
  const { state, turn } = view.value;
  if (!state.members.length) return null;
  return (
    <section class="members" aria-label="Team">
      <h2>Team</h2>
      <ul>
        {state.members.map((member) => {
          const { role } = member;
          const active = turn?.speaker === member.name;
          return (
            <li key={member.name} class={active ? 'active' : ''}>
              <Avatar role={role} /> {member.title} <RoleName who={member.name} state={state} />{' '}
              <span class="quiet">
                {active
                  ? role === 'person'
                    ? '· your turn'
                    : paused.value
                      ? '· next'
                      : '· at work'
                  : role === 'person'
                    ? ''
                    : people && places(people, member.role)}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
