// Runs: the one that is going on, live, and those before it.

import { Output } from './code';
import { RunRow } from './items';
import { live, streamed, view } from './state';
import { visible } from './text';

export function RunTab() {
  streamed.value;
  const { runs, running, turn } = view.value;
  const output = turn ? live.value.of('output', turn.speaker) : '';
  if (!runs.length && !running)
    return (
      <p class="empty">Nothing has run yet. Every run happens in a sandbox and is shown here as it goes.</p>
    );
  return (
    <div>
      {running && (
        <section class="run going">
          <h3>
            Running <code>{visible(running.command)}</code>
            <span class="dots" aria-hidden="true" />
          </h3>
          <Output text={output || 'no output yet'} label="Output so far" />
        </section>
      )}
      {[...runs]
        .reverse()
        .slice(0, 100)
        .map((run, index) => (
          <div key={`${run.id} ${runs.length - index}`}>
            <p class="quiet run-id">{visible(run.id)}</p>
            <RunRow run={run} unfolded={index === 0 && !running} />
          </div>
        ))}
    </div>
  );
}
