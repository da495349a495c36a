// Who speaks: a name, a letter, a shape and a colour, never colour alone.

const LETTERS: Record<string, string> = { planner: 'P', coder: 'C', runner: 'R', reviewer: 'V', manager: 'M', exemplar: 'E', writer: 'W', editor: 'D', proxy: 'U', person: 'U', septet: '7' };

export function roleOf(who: string, members: { name: string; role: string }[]): string {
  const role = members.find((member) => member.name === who)?.role ?? who;
  return role === 'proxy' ? 'person' : role;
}

export function Avatar({ role }: { role: string }) {
  return <span class={`avatar role-${role in LETTERS ? role : 'other'}`} aria-hidden="true">{LETTERS[role] ?? role.slice(0, 1).toUpperCase()}</span>;
}

export function shownName(who: string): string {
  return who === 'person' || who === 'proxy' ? 'you' : who;
}
