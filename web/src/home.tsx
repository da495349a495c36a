// The first page: one prompt with Start beside it; options, model and folder are folded; demos with pictures.

import { useEffect, useState } from 'preact/hooks';
import { open } from './state';
import { get, type ModelState, post, type Setup } from './connection';
import { DemoPicture } from './demos';
import { FolderPicker } from './folders';
import { ModelPicker } from './models';
import { visible } from './text';

const EXAMPLES = [
  'An analog clock, drawn as a picture',
  'Count the words of a text file, the most frequent first',
  'Turn a CSV file into a bar chart',
];
const FORM = {
  team: 'iterate',
  model: '',
  folder: '',
  step: false,
  yes: false,
  consult: false,
  rounds: '',
  cost: '',
};
type Form = typeof FORM;

export function Home() {
  const [setup, setSetup] = useState<Setup>();
  const [model, setModel] = useState<ModelState>();
  const [goal, setGoal] = useState('');
  const [form, setForm] = useState(FORM);
  const [trouble, setTrouble] = useState('');
  const [busy, setBusy] = useState(false);
  const look = () => void get<ModelState>('/api/model').then(setModel, () => undefined);
  useEffect(() => {
    get<Setup>('/api/setup').then(
      (found) => {
        setSetup(found);
        setForm((before) => ({ ...before, team: found.team }));
      },
      (error: Error) => setTrouble(error.message),
    );
    look();
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
  const submit = () => {
    if (!goal.trim() || busy) return;
    const { rounds, cost, ...rest } = form;
    void begin({
      goal,
      ...rest,
      ...(rounds && { rounds: Number(rounds) }),
      ...(cost && { cost: Number(cost) }),
    });
  };
  const set = (change: Partial<Form>) => setForm((before) => ({ ...before, ...change }));
  return (
    <section class="home" aria-label="New chat">
      <h1>What would you like?</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <label class="sr" for="goal">
          Goal
        </label>
        <div class="prompt">
          <textarea
            id="goal"
            rows={2}
            placeholder="A program that …"
            value={goal}
            onInput={(input) => setGoal(input.currentTarget.value)}
            onKeyDown={(key) => {
              if (key.key !== 'Enter' || key.shiftKey || key.isComposing) return;
              key.preventDefault();
              submit();
            }}
          />
          <button type="submit" class="primary" disabled={busy || !goal.trim()}>
            {busy ? 'Starting …' : 'Start'}
          </button>
        </div>
        {trouble && (
          <p class="banner bad" role="alert">
            {trouble}
          </p>
        )}
        <div class="examples">
          {EXAMPLES.map((one) => (
            <button type="button" class="pill" key={one} onClick={() => setGoal(one)}>
              {one}
            </button>
          ))}
        </div>
        <details class="fold options" open={model && !model.name ? true : undefined}>
          <summary>
            <ModelSummary model={model} chosen={form.model} />
          </summary>
          <ModelPicker
            chosen={form.model}
            choose={(name) => set({ model: name })}
            found={model}
            changed={look}
          />
        </details>
        <details class="fold options">
          <summary>
            Folder: <b>{form.folder ? visible(form.folder) : 'a new one'}</b>
          </summary>
          <FolderPicker chosen={form.folder} choose={(folder) => set({ folder })} />
        </details>
        <details class="fold options">
          <summary>
            Options: <b>{described(form)}</b>
          </summary>
          <Options form={form} set={set} teams={setup?.teams ?? ['iterate']} />
        </details>
      </form>
      <h2>Or watch a demo</h2>
      <p class="quiet">
        The team's words were written beforehand; its code, tests and pictures are really run here. No key, no
        network.
      </p>
      <ul class="demos">
        {setup?.demos.map((demo) => (
          <li key={demo.name}>
            <button
              type="button"
              disabled={busy}
              onClick={() => void begin({ demo: demo.name, yes: form.yes })}
            >
              <DemoPicture name={demo.name} />
              <span>
                <b>
                  <span class="sr">Demo: </span>
                  {visible(demo.name.replace('-', ' '))}
                </b>
                {visible(demo.title)}
                <span class="quiet">team {demo.team}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function ModelSummary({ model, chosen }: { model?: ModelState; chosen: string }) {
  if (chosen)
    return (
      <>
        Model: <b>{visible(chosen)}</b>
      </>
    );
  if (!model) return <>Model: looking …</>;
  if (!model.name)
    return (
      <>
        Model: <b class="bad">none yet</b>, choose one:
      </>
    );
  return (
    <>
      Model: <b>{visible(shortened(model.name))}</b> <span class="quiet">{visible(model.reason)}</span>
    </>
  );
}

/** Of a script's path the name is enough. */
function shortened(name: string): string {
  return /^(scripted|replay):/.test(name) ? name.replace(/^(\w+:).*\//, '$1') : name;
}

function described({ team, rounds, cost, step, yes, consult }: Form): string {
  return [
    `team ${team}`,
    rounds && `${rounds} rounds`,
    cost && `at most $${cost}`,
    yes && 'plan approved beforehand',
    consult && 'ask before each review',
    step && 'step mode',
  ]
    .filter(Boolean)
    .join(', ');
}

function Options({
  form,
  set,
  teams,
}: {
  form: Form;
  set: (change: Partial<Form>) => void;
  teams: string[];
}) {
  return (
    <>
      <div class="fields">
        <label>
          Team{' '}
          <select value={form.team} onChange={(change) => set({ team: change.currentTarget.value })}>
            {teams.map((team) => (
              <option key={team}>{team}</option>
            ))}
          </select>
        </label>
        <label>
          Versions at most{' '}
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
          Cost limit in ${' '}
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
        <Tick checked={form.yes} set={(yes) => set({ yes })} title="Approve the plan for me" />
        <Tick checked={form.consult} set={(consult) => set({ consult })} title="Ask me before each review" />
        <Tick checked={form.step} set={(step) => set({ step })} title="Step mode: ask before each turn" />
      </div>
    </>
  );
}

function Tick({ checked, set, title }: { checked: boolean; set: (now: boolean) => void; title: string }) {
  return (
    <label class="tick">
      <input type="checkbox" checked={checked} onChange={(change) => set(change.currentTarget.checked)} />{' '}
      {title}
    </label>
  );
}
