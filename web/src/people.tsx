// Who speaks: a name, a letter, a shape and a colour, never colour alone.

import type { Team } from './events';

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

function memberOf(who: string, team: Team) {
  return team.members.find((member) => member.name === who);
}

/** The proxy is the person, but among assistants: there a model speaks for the person. */
export function isPerson(who: string, team: Team): boolean {
  return who === 'person' || (team.floor !== 'direct' && (memberOf(who, team)?.role ?? who) === 'proxy');
}

export function roleOf(who: string, team: Team): string {
  return isPerson(who, team) ? 'person' : (memberOf(who, team)?.role ?? who);
}

export function Avatar({ role }: { role: string }) {
  return (
    <span class={`avatar role-${role in LETTERS ? role : 'other'}`} aria-hidden="true">
      {LETTERS[role] ?? role.slice(0, 1).toUpperCase()}
    </span>
  );
}

/** What a member is called: by the name that its team gave it. */
export function shownName(who: string, team: Team): string {
  return isPerson(who, team) ? 'you' : memberOf(who, team)?.title || who;
}

/** The role of one whose name does not say it. */
export function Calling({ who, team }: { who: string; team: Team }) {
  const role = roleOf(who, team);
  return role === 'person' || role === shownName(who, team) ? null : (
    <span class="quiet calling">{role}</span>
  );
}
