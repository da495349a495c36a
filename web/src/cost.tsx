// What it cost: per member and model, and how it grew.

import type { BudgetView } from './events';
import { RoleName, titleOf } from './people';
import { view } from './state';
import { short } from './text';

const WIDTH = 320;
const HEIGHT = 90;

export function CostTab() {
  const { spent, growth, state } = view.value;
  const { prompt = 0, cached = 0, completion = 0 } = state.usage;
  const rows = [...spent.values()];
  if (!rows.length)
    return (
      <div>
        <p class="empty">No model has been asked yet.</p>
        <Budgets budgets={state.budgets} />
      </div>
    );
  return (
    <div>
      <h3>
        Cost{' '}
        <span class="quiet">
          ${state.cost.toFixed(4)} · {short(prompt)} tokens in
          {cached > 0 && <>, {short(cached)} of them cached</>}, {short(completion)} out
        </span>
      </h3>
      <div class="table costs" tabIndex={0} role="region" aria-label="Cost per member">
        <table>
          <thead>
            <tr>
              <th>member</th>
              <th>model</th>
              <th>answers</th>
              <th>in</th>
              <th>cached</th>
              <th>out</th>
              <th>seconds</th>
              <th>$</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((one) => (
              <tr key={`${one.who} ${one.model}`}>
                <td>
                  {titleOf(one.who, state)} <RoleName who={one.who} state={state} />
                </td>
                <td>{breakable(one.model)}</td>
                <td>{one.answers}</td>
                <td>{short(one.prompt)}</td>
                <td>{short(one.cached)}</td>
                <td>{short(one.completion)}</td>
                <td>{one.seconds.toFixed(1)}</td>
                <td>{one.cost.toFixed(4)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Budgets budgets={state.budgets} />
      <Growth
        points={growth.map(({ at, cost, tokens }) => ({ at, value: growth.at(-1)!.cost ? cost : tokens }))}
        unit={growth.at(-1)!.cost ? '$' : 'tokens'}
      />
    </div>
  );
}

/** A model's name with places to break it at. */
function breakable(name: string) {
  return name.split(/(?<=[:/])/).map((part) => (
    <>
      {part}
      <wbr />
    </>
  ));
}

function Budgets({ budgets }: { budgets: BudgetView[] }) {
  if (!budgets.length) return null;
  return (
    <section class="budgets" aria-label="Budgets">
      <h3>
        Budgets <span class="quiet">used / limit</span>
      </h3>
      <ul>
        {budgets.map((one) => {
          const words = `${amount(one.used, one.unit)} / ${amount(one.limit, one.unit)}`;
          return (
            <li key={`${one.owner} ${one.unit}`}>
              <b>{one.owner}</b> <span class={one.used >= one.limit ? 'bad' : ''}>{words}</span>
              <progress
                max={1}
                value={one.limit ? Math.min(1, one.used / one.limit) : 1}
                aria-label={`${one.owner}: ${words}`}
              />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function amount(count: number, unit: BudgetView['unit']): string {
  switch (unit) {
    case 'dollars':
      return `$${count.toFixed(count && count < 0.01 ? 4 : 2)}`;
    case 'seconds':
      return `${Math.round(count)} s`;
    case 'tokens':
      return `${short(count)} tokens`;
  }
}

function Growth({ points, unit }: { points: { at: number; value: number }[]; unit: string }) {
  const first = points[0]!.at;
  const span = Math.max(1, points.at(-1)!.at - first);
  const most = Math.max(...points.map((point) => point.value));
  if (!most) return <p class="quiet">This model's answers are free.</p>;
  const place = ({ at, value }: { at: number; value: number }) =>
    `${(((at - first) / span) * WIDTH).toFixed(1)},${(HEIGHT - (value / most) * (HEIGHT - 8)).toFixed(1)}`;
  return (
    <figure class="growth">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT + 2}`}
        role="img"
        aria-label={`${unit} over time, ${most.toFixed(unit === '$' ? 4 : 0)} at the end`}
      >
        <polyline points={[`0,${HEIGHT}`, ...points.map(place)].join(' ')} />
      </svg>
      <figcaption class="quiet">
        {unit} over {(span / 1000).toFixed(0)} s
      </figcaption>
    </figure>
  );
}
