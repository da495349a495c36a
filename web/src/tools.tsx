// Tools that a member used: with what, what came back, which files that changed.

import { Output } from './code';
import { titleOf } from './people';
import { view } from './state';
import { cut, size, visible } from './text';
import type { Call, Tools } from './view';

const GLANCE = 60;
const SEND = 'SendMessage';

export function ToolsBody({ item }: { item: Tools }) {
  return (
    <>
      {item.calls.map((call) => (
        <ToolCall call={call} key={call.id} />
      ))}
    </>
  );
}

function ToolCall({ call }: { call: Call }) {
  const given = argumentsOf(call.arguments);
  const waiting = call.text === undefined;
  const sent = call.name === SEND && given?.find(([name]) => name === 'recipient')?.[1];
  return (
    <div class="run">
      <details>
        <summary>
          <span class={waiting ? 'quiet' : call.failed ? 'bad' : 'good'}>
            {waiting ? '…' : call.failed ? '✗' : '✓'}
          </span>{' '}
          {sent ? (
            <>
              asks <b>{visible(titleOf(sent, view.value.state))}</b>
            </>
          ) : (
            <b>{visible(call.summary || call.name)}</b>
          )}{' '}
          <span class="quiet">
            {call.summary ? '' : visible(glance(given, call.arguments, sent ? 'recipient' : ''))}
          </span>
        </summary>
        {given ? (
          <dl class="given">
            {given.map(([name, value]) => (
              <div key={name}>
                <dt>{visible(name)}</dt>
                <dd>{visible(cut(value, 20_000))}</dd>
              </div>
            ))}
          </dl>
        ) : (
          <Output text={call.arguments} label={`What ${call.name} was given`} />
        )}
        {call.text && <Output text={call.text} label={`What ${call.name} answered`} />}
      </details>
      {call.changes && call.changes.length > 0 && (
        <ul class="files">
          {call.changes.map((change) => (
            <li key={change.path}>
              <span class="quiet">{change.kind}</span> <code>{visible(change.path)}</code>{' '}
              {change.kind !== 'deleted' && <span class="quiet">{size(change.size ?? 0)}</span>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The arguments by name; nothing where they are no JSON object. */
function argumentsOf(text: string): [string, string][] | undefined {
  try {
    const found: unknown = JSON.parse(text);
    if (!found || typeof found !== 'object' || Array.isArray(found)) return undefined;
    return Object.entries(found).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]);
  } catch {
    return undefined;
  }
}

function glance(given: [string, string][] | undefined, text: string, without: string): string {
  const words = given
    ? given
        .filter(([name]) => name !== without)
        .map(([, value]) => (value.length > GLANCE ? `${value.slice(0, GLANCE)}…` : value))
        .join(', ')
    : text.slice(0, 2 * GLANCE);
  return words.replace(/\s+/g, ' ');
}
