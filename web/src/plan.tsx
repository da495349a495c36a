// The plan as a checklist: each requirement, its check, and what shows that it holds for the newest version.

import { useEffect, useState } from 'preact/hooks';
import { checkText } from './events';
import { PlanEditor } from './question';
import { act, view } from './state';
import { visible } from './text';
import { get } from './wire';

export function PlanTab() {
  const now = view.value;
  const [editing, setEditing] = useState(false);
  if (!now.plan && now.team.members.length && !now.team.members.some((member) => member.role === 'planner'))
    return <p class="empty">This team works without a plan.</p>;
  if (!now.plan)
    return (
      <p class="empty">No plan yet. The planner writes one first; nothing is built before you approve it.</p>
    );
  const open = !now.approved && !now.ended;
  return (
    <div class="plan">
      <h3>
        Plan{' '}
        <span class="quiet">
          {now.met} of {now.plan.items.length} met{now.versions.length ? ` by v${now.versions.length}` : ''}
          {open ? ' · not approved yet' : ''}
        </span>
      </h3>
      <progress value={now.met} max={now.plan.items.length} aria-label="Requirements met" />
      <ol class="checklist">
        {now.plan.items.map((item) => {
          const met = now.isMet(item.id);
          return (
            <li key={item.id} class={met === undefined ? '' : met ? 'good' : 'bad'}>
              <span
                class="box"
                role="img"
                aria-label={met === undefined ? 'not checked' : met ? 'met' : 'not met'}
              >
                {met === undefined ? '☐' : met ? '☑' : '☒'}
              </span>
              <div>
                <b>{item.id}</b> {visible(item.text)}
                <br />
                <code class="check">{visible(checkText(item.check))}</code>
                {now.evidence.get(item.id) && (
                  <p class="quiet">{visible(now.evidence.get(item.id)!.detail)}</p>
                )}
              </div>
            </li>
          );
        })}
      </ol>
      {now.approved && <Wishes />}
      {now.plan.run && (
        <p>
          run: <code>{visible(now.plan.run)}</code>
        </p>
      )}
      {open &&
        (editing ? (
          <PlanEditor done={() => setEditing(false)} />
        ) : (
          <div class="buttons">
            <button type="button" class="primary" onClick={() => void act('approve', { seq: now.planSeq })}>
              Approve this plan
            </button>
            <button type="button" onClick={() => setEditing(true)}>
              Edit it
            </button>
          </div>
        ))}
    </div>
  );
}

interface Line {
  item: string;
  requirement: string;
  met: boolean;
  evidence: string;
}

/** What the person asked for since the plan was approved, as the server finds it in the log. */
function Wishes() {
  const { chat, items, versions, reviews } = view.value;
  const [lines, setLines] = useState<Line[]>([]);
  const said = items.filter((item) => item.kind === 'person').length;
  useEffect(() => {
    let current = true;
    get<{ evidence: Line[] }>(`/api/chats/${encodeURIComponent(chat)}`).then(
      ({ evidence }) => current && setLines(evidence.filter((line) => line.item.startsWith('W'))),
      () => {},
    );
    return () => {
      current = false;
    };
  }, [chat, said, versions.length, reviews.size]);
  if (!lines.length) return null;
  return (
    <>
      <h3>Asked for since</h3>
      <ul class="checklist">
        {lines.map((line) => (
          <li key={line.item} class={line.met ? 'good' : 'bad'}>
            <span class="box" role="img" aria-label={line.met ? 'met' : 'not met'}>
              {line.met ? '☑' : '☒'}
            </span>
            <div>
              <b>{line.item}</b> {visible(line.requirement)}
              <p class="quiet">{visible(line.evidence)}</p>
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
