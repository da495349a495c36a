// The first page: what would you like? With examples, demos that need no model, and the state of the model.

import { useEffect, useState } from 'preact/hooks';
import { open } from './state';
import { get, type ModelState, post, type Setup } from './connection';

const EXAMPLES = [
  'An analog clock, drawn as a picture',
  'Count the words of a text file, the most frequent first',
  'Turn a CSV file into a bar chart',
];

export function Home() {
  const [setup, setSetup] = useState<Setup>();
  const [model, setModel] = useState<ModelState>();
  const [goal, setGoal] = useState('');
  const [form, setForm] = useState({
    team: 'iterate',
    model: '',
    step: false,
    yes: false,
    consult: false,
    rounds: '',
    cost: '',
  });
  const [trouble, setTrouble] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    get<Setup>('/api/setup').then(
      (found) => {
        setSetup(found);
        setForm((before) => ({ ...before, team: found.team }));
      },
      (error: Error) => setTrouble(error.message),
    );
    get<ModelState>('/api/model').then(setModel, () => undefined);
  }, []);
  const begin = async (body: object) => {
    setBusy(true);
    setTrouble('');
    try {
      open((await post<{ chat: string }>('/api/chats', body)).chat);
    } catch (error) {
      setTrouble((error as Error).message);
    }
    setBusy(false);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const { rounds, cost, ...rest } = form;
    void begin({
      goal,
      ...rest,
      ...(rounds && { rounds: Number(rounds) }),
      ...(cost && { cost: Number(cost) }),
    });
  };
  const set = (change: Partial<typeof form>) => setForm({ ...form, ...change });
  return (
    <section class="home" aria-label="New chat">
      <h1>What would you like?</h1>
      <form onSubmit={submit}>
        <label class="sr" for="goal">
          Goal
        </label>
        <textarea
          id="goal"
          rows={3}
          placeholder="A program that …"
          value={goal}
          onInput={(input) => setGoal(input.currentTarget.value)}
        />
        <div class="examples">
          {EXAMPLES.map((one) => (
            <button type="button" key={one} onClick={() => setGoal(one)}>
              {one}
            </button>
          ))}
        </div>
        <div class="fields">
          <label>
            Team{' '}
            <select value={form.team} onChange={(change) => set({ team: change.currentTarget.value })}>
              {(setup?.teams ?? ['iterate']).map((team) => (
                <option key={team}>{team}</option>
              ))}
            </select>
          </label>
          <label>
            Model{' '}
            <input
              value={form.model}
              placeholder={model ? model.name || 'none found' : 'looking …'}
              onInput={(input) => set({ model: input.currentTarget.value })}
            />
          </label>
          <label>
            Rounds{' '}
            <input
              type="number"
              min="1"
              max="1000"
              value={form.rounds}
              placeholder="8"
              onInput={(input) => set({ rounds: input.currentTarget.value })}
            />
          </label>
          <label>
            At most ${' '}
            <input
              type="number"
              min="0.01"
              step="0.01"
              value={form.cost}
              placeholder="no limit"
              onInput={(input) => set({ cost: input.currentTarget.value })}
            />
          </label>
        </div>
        <div class="fields">
          <label class="tick">
            <input
              type="checkbox"
              checked={form.yes}
              onChange={(change) => set({ yes: change.currentTarget.checked })}
            />{' '}
            Approve the plan for me
          </label>
          <label class="tick">
            <input
              type="checkbox"
              checked={form.consult}
              onChange={(change) => set({ consult: change.currentTarget.checked })}
            />{' '}
            Ask me before each review
          </label>
          <label class="tick">
            <input
              type="checkbox"
              checked={form.step}
              onChange={(change) => set({ step: change.currentTarget.checked })}
            />{' '}
            Step mode: ask before each turn
          </label>
        </div>
        <button type="submit" class="primary" disabled={busy || !goal.trim()}>
          Start
        </button>
      </form>
      {trouble && (
        <p class="banner bad" role="alert">
          {trouble}
        </p>
      )}
      {model && <p class="quiet">{model.name ? `Model: ${model.name} (${model.reason})` : model.reason}</p>}
      <h2>Or watch a demo</h2>
      <p class="quiet">
        The team's words were written beforehand; its code, tests and pictures are really run here. No key, no
        network.
      </p>
      <div class="examples">
        {setup?.demos.map((demo) => (
          <button
            type="button"
            key={demo}
            disabled={busy}
            onClick={() => void begin({ demo, yes: form.yes })}
          >
            Demo: {demo}
          </button>
        ))}
      </div>
    </section>
  );
}
