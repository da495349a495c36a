// What a group agrees on, as the conversation shows it: the floor, facts, examples, packages, the end of a task.

import type { Event } from './events';
import { note, put, replied } from './hearing';
import { shownName } from './people';
import { took } from './spending';
import type { View } from './view';

export function hearGroup(view: View, event: Event): boolean {
  switch (event.type) {
    case 'septet.speaker_chosen': {
      const { speaker, fallback } = event.data;
      const next = shownName(speaker, view.team);
      note(
        view,
        event,
        whose(view, 'manager'),
        fallback ? `${next} goes on: nobody else could be made out` : `${next} goes on`,
      );
      return true;
    }
    case 'septet.terminated':
      note(view, event, whose(view, 'manager'), `The task is resolved: ${event.data.summary}`, 'good');
      return true;
    case 'septet.facts_changed': {
      const { add = [], drop = [] } = event.data.change;
      const text = [...add.map((fact) => `remember: ${fact}`), ...drop.map((fact) => `forget: ${fact}`)].join(
        '; ',
      );
      put(view, { kind: 'facts', seq: event.seq, at: event.time, who: event.data.by, text, add, drop });
      replied(view);
      return true;
    }
    case 'septet.example_given': {
      const { failure, code = '', source = '', title = '' } = event.data;
      put(view, {
        kind: 'example',
        seq: event.seq,
        at: event.time,
        who: whose(view, 'exemplar'),
        text: failure,
        code,
        source,
        title,
      });
      return true;
    }
    case 'septet.chat_halted':
      note(
        view,
        event,
        'septet',
        `An error stopped the work: ${[event.data.cause, event.data.remedy].filter(Boolean).join(': ')}`,
        'bad',
      );
      return true;
    case 'septet.budget_reached':
      note(
        view,
        event,
        'septet',
        `${shownName(event.data.by, view.team)} was not asked: a budget would not do for the answer`,
        'bad',
      );
      return true;
    default:
      return false;
  }
}

export function hearPackages(view: View, event: Event): boolean {
  switch (event.type) {
    case 'septet.packages_wanted': {
      const { distributions = [], unknown = [] } = event.data.missing;
      view.wanted = [
        ...distributions,
        ...unknown.map((name) => `${name} (if the index has one of that name that provides it)`),
      ];
      note(view, event, whose(view, 'runner'), `Not installed: ${view.wanted.join(', ')}`);
      return true;
    }
    case 'septet.packages_decided': {
      const { names, allowed, always, by } = event.data;
      view.wanted = [];
      note(
        view,
        event,
        by === 'policy' ? 'septet' : 'person',
        `${allowed ? 'Install' : 'Do not install'} ${names.join(', ')}${always ? ', and whatever else this chat will want' : ''}${by === 'flag' ? ' (said beforehand)' : ''}`,
      );
      replied(view);
      return true;
    }
    case 'septet.packages_installed': {
      const { installed = [], failed = [], why = '', output = '', seconds = 0 } = event.data.installation;
      view.wanted = [];
      took(view, seconds);
      const text = [
        installed.length ? `Installed ${installed.join(', ')} in ${seconds.toFixed(1)} s` : '',
        failed.length ? `Could not install ${failed.join(', ')}: ${why}` : '',
      ]
        .filter(Boolean)
        .join('. ');
      if (text)
        note(
          view,
          event,
          whose(view, 'runner'),
          text,
          failed.length ? 'bad' : 'good',
          output.trim() ? { title: 'What the installer said', text: output } : undefined,
        );
      return true;
    }
    default:
      return false;
  }
}

/** The member whose turn it is, if it has that role; else the role itself. */
function whose(view: View, role: string): string {
  const member = view.team.members.find((one) => one.name === view.turn?.speaker);
  return member && member.role === role
    ? member.name
    : (view.team.members.find((one) => one.role === role)?.name ?? role);
}
