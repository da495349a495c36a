// The plan as a checklist: each requirement, its check, and what shows that it holds for the newest version.

import { useState } from 'preact/hooks';
import { checkText } from './events';
import { PlanEditor } from './question';
import { act, view } from './state';
import { visible } from './text';

export function PlanTab() {
  const now = view.value;
  const [editing, setEditing] = useState(false);
  if (!now.plan && now.team.members.length && !now.team.members.some((member) => member.role === 'planner')) return <p class="empty">This team works without a plan.</p>;
  if (!now.plan) return <p class="empty">No plan yet. The planner writes one first; nothing is built before you approve it.</p>;
  const open = !now.approved && !now.ended;
  return (
    <div class="plan">
      <h3>Plan <span class="quiet">{now.met} of {now.plan.items.length} met{now.versions.length ? ` by v${now.versions.length}` : ''}{open ? ' · not approved yet' : ''}</span></h3>
      <progress value={now.met} max={now.plan.items.length} aria-label="Requirements met" />
      <ol class="checklist">
        {now.plan.items.map((item) => {
          const met = now.isMet(item.id);
          return (
            <li key={item.id} class={met === undefined ? '' : met ? 'good' : 'bad'}>
              <span class="box" role="img" aria-label={met === undefined ? 'not checked' : met ? 'met' : 'not met'}>{met === undefined ? '☐' : met ? '☑' : '☒'}</span>
              <div><b>{item.id}</b> {visible(item.text)}<br /><code class="check">{visible(checkText(item.check))}</code>
                {now.evidence.get(item.id) && <p class="quiet">{visible(now.evidence.get(item.id)!.detail)}</p>}</div>
            </li>
          );
        })}
      </ol>
      {now.plan.run && <p>run: <code>{visible(now.plan.run)}</code></p>}
      {open && (editing ? <PlanEditor done={() => setEditing(false)} /> : (
        <div class="buttons">
          <button type="button" class="primary" onClick={() => void act('approve', { seq: now.planSeq })}>Approve this plan</button>
          <button type="button" onClick={() => setEditing(true)}>Edit it</button>
        </div>
      ))}
    </div>
  );
}
