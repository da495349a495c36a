// Which model a new chat uses: one that is here, one behind a key that is typed here, or the embedded one, fetched once.

import { useEffect, useState } from 'preact/hooks';
import { get, type ModelState, post } from './connection';
import type { ModelsView } from './events';
import { size, visible } from './text';

const LOOK = 1000;

interface Props {
  chosen: string;
  choose: (name: string) => void;
  found?: ModelState;
  changed: () => void;
}

export function ModelPicker({ chosen, choose, found, changed }: Props) {
  const [known, setKnown] = useState<ModelsView>();
  const [trouble, setTrouble] = useState('');
  const look = () =>
    get<ModelsView>('/api/models').then(setKnown, (error: Error) => setTrouble(error.message));
  useEffect(() => void look(), []);
  const loading = known?.download && !known.download.error ? known.download : undefined;
  useEffect(() => {
    if (!loading) return;
    const timer = setTimeout(() => void look().then(changed), LOOK);
    return () => clearTimeout(timer);
  }, [known]);
  const download = (name: string) =>
    void post('/api/models/download', { name }).then(look, (error: Error) => setTrouble(error.message));
  const here = known?.overview.models.filter((one) => one.here !== false) ?? [];
  const away = known?.overview.models.filter((one) => one.here === false) ?? [];
  return (
    <div class="picker">
      <label>
        Model{' '}
        <input
          list="models"
          value={chosen}
          placeholder={found ? found.name || 'none found' : 'looking …'}
          onInput={(input) => choose(input.currentTarget.value)}
        />
      </label>
      <datalist id="models">
        {here.map((one) => (
          <option key={one.name} value={one.name}>
            {one.about}
          </option>
        ))}
        {known?.overview.keys.map((provider) => (
          <option key={provider} value={`${provider}/`}>
            a key is known
          </option>
        ))}
      </datalist>
      {found && !found.name && <p class="quiet">{visible(found.reason)}</p>}
      {known && (
        <KeyEntry
          providers={known.providers}
          stored={() => {
            void look();
            changed();
          }}
        />
      )}
      {loading ? (
        <label>
          Downloading {loading.name}: {size(loading.here)} of {size(loading.whole)}
          <progress max={loading.whole || 1} value={loading.here} />
        </label>
      ) : (
        known &&
        away.slice(0, 3).map((one) => (
          <p key={one.name}>
            <button
              type="button"
              disabled={Boolean(known.runtime)}
              onClick={() => download(one.name.replace(/^local\//, ''))}
            >
              Download {one.name}
            </button>{' '}
            <span class="quiet">{visible(one.about)}; runs on this machine, offline</span>
          </p>
        ))
      )}
      {known?.runtime && away.length > 0 && <p class="quiet">No embedded model: {visible(known.runtime)}.</p>}
      {(trouble || known?.download?.error) && (
        <p class="banner bad" role="alert">
          {trouble || known?.download?.error}
        </p>
      )}
    </div>
  );
}

function KeyEntry({ providers, stored }: { providers: string[]; stored: () => void }) {
  const [provider, setProvider] = useState('openai');
  const [key, setKey] = useState('');
  const [answer, setAnswer] = useState('');
  const [busy, setBusy] = useState(false);
  const store = async () => {
    setBusy(true);
    try {
      const told = await post<{ stored: string; answer: string }>('/api/keys', { provider, key });
      if (!told.stored) setAnswer(told.answer);
      else {
        setKey('');
        setAnswer(`Stored in ${told.stored}, readable only by you; ${told.answer}.`);
        stored();
      }
    } catch (error) {
      setAnswer((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <div>
      <div class="fields">
        <label>
          API key for{' '}
          <select value={provider} onChange={(change) => setProvider(change.currentTarget.value)}>
            {providers.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <input
          type="password"
          autocomplete="off"
          aria-label={`API key for ${provider}`}
          placeholder="paste a key"
          value={key}
          onInput={(input) => setKey(input.currentTarget.value)}
        />
        <button type="button" disabled={busy || !key.trim()} onClick={() => void store()}>
          {busy ? 'Asking …' : 'Check and store'}
        </button>
      </div>
      {answer && (
        <p class="quiet on-disk" role="status">
          {visible(answer)}
        </p>
      )}
    </div>
  );
}
