// Who speaks: a name, a letter, a shape and a colour, never colour alone.

import type { ChatView } from './events';

const LETTERS: Record<string, string> = {
  planner: 'P',
  coder: 'C',
  runner: 'R',
  reviewer: 'V',
  manager: 'M',
  exemplar: 'E',
  writer: 'W',
  editor: 'D',
  proxy: 'X',
  person: 'U',
  septet: '7',
};

export function isPerson(who: string, { person }: ChatView): boolean {
  return who === 'person' || (who !== '' && who === person);
}

export function roleOf(who: string, state: ChatView): string {
  return isPerson(who, state) ? 'person' : (memberOf(who, state)?.role ?? who);
}

/** What a member is called: by the name that its team gave it. */
export function titleOf(who: string, state: ChatView): string {
  return isPerson(who, state) ? 'you' : (memberOf(who, state)?.title ?? who);
}

function memberOf(who: string, { members }: ChatView) {
  return members.find((member) => member.name === who);
}

export function Avatar({ role }: { role: string }) {
  return (
    <span class={`avatar role-${role in LETTERS ? role : 'other'}`} aria-hidden="true">
      {LETTERS[role] ?? role.slice(0, 1).toUpperCase()}
    </span>
  );
}

/** The role of one whose name does not say it. */
export function RoleName({ who, state }: { who: string; state: ChatView }) {
  const role = roleOf(who, state);
  return role === 'person' || role === titleOf(who, state) ? null : <span class="quiet calling">{role}</span>;
}
