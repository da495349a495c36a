// The plan as a checklist: each requirement, its check, and what shows that it holds for the newest version.

import { useState } from 'preact/hooks';
import type { RequirementView } from './events';
import { approve, PlanEditor } from './question';
import { view } from './state';
import { visible } from './text';

export function PlanTab() {
  const { state, ended, met, versions } = view.value;
  const { plan } = state;
  const [editing, setEditing] = useState(false);
  if (!plan && !state.plans) return <p class="empty">This team works without a plan.</p>;
  if (!plan)
    return (
      <p class="empty">No plan yet. The planner writes one first; nothing is built before you approve it.</p>
    );
  const open = !plan.approved && !ended;
  const checking =
    !ended && plan.requirements.some((one) => one.met === null && typeof one.earlier === 'boolean');
  return (
    <div class="plan">
      <h3>
        Plan{' '}
        <span class="quiet">
          {met} of {plan.requirements.length} met
          {versions.length
            ? checking
              ? `, v${versions.length} is being checked`
              : ` by v${versions.length}`
            : ''}
          {open ? ' · not approved yet' : ''}
        </span>
      </h3>
      <progress value={met} max={plan.requirements.length} aria-label="Requirements met" />
      <ol class="checklist">
        {plan.requirements.map((one) => (
          <Requirement one={one} check key={one.id} />
        ))}
      </ol>
      {plan.wishes.length > 0 && (
        <>
          <h3>Asked for later</h3>
          <ul class="checklist">
            {plan.wishes.map((one) => (
              <Requirement one={one} key={one.id} />
            ))}
          </ul>
        </>
      )}
      {plan.run && (
        <p>
          run: <code>{visible(plan.run)}</code>
        </p>
      )}
      {open &&
        (editing ? (
          <PlanEditor done={() => setEditing(false)} />
        ) : (
          <div class="buttons">
            <button type="button" class="primary" onClick={approve}>
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

const EARLIER = { tone: 'earlier', mark: '☑', words: 'met by an earlier version' };
const NOT_EARLIER = { tone: 'earlier', mark: '☒', words: 'not met by the version before' };
const UNKNOWN = { tone: '', mark: '☐', words: 'not checked' };
const MET = { tone: 'good', mark: '☑', words: 'met' };
const NOT_MET = { tone: 'bad', mark: '☒', words: 'not met' };

function look({ met, earlier }: RequirementView) {
  if (met !== null) return met ? MET : NOT_MET;
  return earlier === undefined || earlier === null ? UNKNOWN : earlier ? EARLIER : NOT_EARLIER;
}

function Requirement({ one, check = false }: { one: RequirementView; check?: boolean }) {
  const { tone, mark, words } = look(one);
  return (
    <li class={tone}>
      <span class="box" role="img" aria-label={words}>
        {mark}
      </span>
      <div>
        <b>{one.id}</b> {visible(one.text)}
        {check && (
          <>
            <br />
            <code class="check">{visible(one.check)}</code>
          </>
        )}
        {one.met === null && typeof one.earlier === 'boolean' && (
          <p class="quiet">{words}; not checked again yet</p>
        )}
        {(one.evidence || check) && (
          <p class="quiet">
            {[one.evidence && visible(one.evidence), check && `check written by ${visible(one.author)}`]
              .filter(Boolean)
              .join(' · ')}
          </p>
        )}
      </div>
    </li>
  );
}
