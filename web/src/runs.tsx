// Runs: the one that is going on, live, and those before it.

import { Output } from './code';
import { isControl, RunRow } from './items';
import { live, streamed, view } from './state';
import { visible } from './text';

const SHOWN = 100;

export function RunTab() {
  streamed.value;
  const { runs, running, turn } = view.value;
  const output = turn ? live.value.of('output', turn.speaker) : '';
  if (!runs.length && !running)
    return (
      <p class="empty">Nothing has run yet. Every run happens in a sandbox and is shown here as it goes.</p>
    );
  const newest = running ? -1 : runs.findLastIndex((run) => !isControl(run));
  const shown = runs.map((run, index) => ({ run, index })).slice(-SHOWN);
  const versions = [...new Set(shown.map(({ run }) => run.version))].reverse();
  return (
    <div>
      {running && (
        <section class="run going">
          <h3>
            Running {visible(running.title)} <code>{visible(running.command)}</code>
            <span class="dots" aria-hidden="true" />
          </h3>
          <Output text={output || 'no output yet'} label="Output so far" />
        </section>
      )}
      {versions.map((version) => (
        <section class="runs" key={version}>
          <h3>{version ? `v${version}` : 'Before the first version'}</h3>
          {shown
            .filter(({ run }) => run.version === version)
            .map(({ run, index }) => (
              <RunRow run={run} unfolded={index === newest} key={`${run.id} ${index}`} />
            ))}
        </section>
      ))}
    </div>
  );
}
