// The conversation: everything that was said, then what is being said now, then what the team wants to know.

import { useEffect } from 'preact/hooks';
import { languageOf, Source } from './code';
import { Composer } from './composer';
import { Entry } from './items';
import { Avatar, isPerson, RoleName, roleOf, titleOf } from './people';
import { Questions } from './question';
import { Scroll } from './scroll';
import { link, live, open, paused, streamed, ready, view, where } from './state';
import { visible } from './text';

const TAIL = 12_000;
const FENCE = /^ {0,3}(?:```+|~~~+)(.*)$/;

/** Words as they come; what stands between fences is code and has its colours from its first line on. */
function Stream({ text }: { text: string }) {
  const parts: { code: boolean; info: string; lines: string[] }[] = [{ code: false, info: '', lines: [] }];
  for (const line of text.split('\n')) {
    const fence = FENCE.exec(line);
    const last = parts.at(-1)!;
    if (fence) parts.push({ code: !last.code, info: last.code ? '' : fence[1]!.trim(), lines: [] });
    else last.lines.push(line);
  }
  return (
    <div class="streaming">
      {parts.map(({ code, info, lines }, index) =>
        code ? (
          <figure key={index}>
            {info && <figcaption class="quiet">{visible(info)}</figcaption>}
            <Source text={lines.join('\n')} language={languageOfFence(info)} />
          </figure>
        ) : (
          <p class="words" key={index}>
            {visible(lines.join('\n'))}
          </p>
        ),
      )}
    </div>
  );
}

function languageOfFence(info: string): string {
  const [first = '', path = ''] = info.split(/\s+/);
  const byPath = languageOf(path || first);
  return byPath === 'plaintext' ? first.toLowerCase() || 'plaintext' : byPath;
}

export function Conversation() {
  const { items } = view.value;
  if (link.value === 'unknown') return <NoSuchChat />;
  const sought = where.value.message ? items.findIndex((item) => item.seq === where.value.message) : -1;
  return (
    <section class="talk" aria-label="Conversation">
      {!ready.value && !items.length ? (
        <p class="empty" aria-busy="true">
          Opening the log …
        </p>
      ) : (
        <Scroll
          key={view.value.chat}
          count={items.length}
          guess={130}
          name="Messages"
          role="feed"
          follow
          target={sought}
          tail={<Speaking />}
          entry={(index) => (
            <Entry
              item={items[index]!}
              index={index}
              count={items.length}
              revision={items[index]!.revision}
            />
          )}
        />
      )}
      <Questions />
      <Composer />
    </section>
  );
}

function NoSuchChat() {
  return (
    <section class="home" aria-label="Not found">
      <h1>There is no chat of this name</h1>
      <p>It may have been renamed or deleted. Choose one of the list, or start a new one.</p>
      <p>
        <button type="button" class="primary" onClick={() => open('')}>
          New chat
        </button>
      </p>
    </section>
  );
}

/** Everybody whose words or output are coming in, each in a bubble of their own. */
function Speaking() {
  streamed.value;
  const { turn, running, state, ended } = view.value;
  if (!turn || ended || paused.value) return null;
  const names = [...new Set([turn.speaker, ...state.members.map((member) => member.name)])];
  const speaking = names.filter(
    (name) =>
      (name === turn.speaker && !isPerson(name, state)) ||
      live.value.of('text', name) ||
      live.value.of('reasoning', name),
  );
  return (
    <>
      {speaking
        .filter((name) => !(name === turn.speaker && (turn.answered || running)))
        .map((name) => (
          <Bubble name={name} key={name} />
        ))}
    </>
  );
}

function Bubble({ name }: { name: string }) {
  streamed.value;
  const { state } = view.value;
  const role = roleOf(name, state);
  const text = live.value.of('text', name);
  const reasoning = live.value.of('reasoning', name);
  useEffect(() => {
    const box = document.querySelector('.talk .scroll');
    if (box && box.scrollHeight - box.scrollTop - box.clientHeight < 120) box.scrollTop = box.scrollHeight;
  });
  return (
    <div class="entry live">
      <Avatar role={role} />
      <div class="bubble">
        <header>
          <b class={`name role-${role}`}>{titleOf(name, state)}</b> <RoleName who={name} state={state} />{' '}
          <span class="quiet">
            {text ? 'is writing' : 'is at work'}
            <span class="dots" aria-hidden="true" />
          </span>
        </header>
        {reasoning && !text && <p class="words quiet">{visible(reasoning.slice(-TAIL))}</p>}
        {text && <Stream text={text.length > TAIL ? `…${text.slice(-TAIL)}` : text} />}
      </div>
    </div>
  );
}
