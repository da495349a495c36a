// The workbench: the plan, the code, the runs, what they made, what it cost, and the log itself.

import { CodeTab } from './codetab';
import { CostTab } from './cost';
import { Divider } from './divider';
import { FilesTab, OutputTab } from './files';
import { LogTab } from './log';
import { PlanTab } from './plan';
import { RunTab } from './runs';
import { chooseTab, tab, TABS, type Tab, view } from './state';

const PARTS: Record<Tab, () => preact.JSX.Element> = {
  Plan: PlanTab,
  Code: CodeTab,
  Run: RunTab,
  Output: OutputTab,
  Files: FilesTab,
  Cost: CostTab,
  Log: LogTab,
};

export function Workbench() {
  const Part = PARTS[tab.value];
  const { state, met, versions, runs, artefacts } = view.value;
  const counts: Partial<Record<Tab, string>> = {
    Plan: state.plan ? `${met}/${state.plan.requirements.length}` : '',
    Code: versions.length ? `v${versions.length}` : '',
    Run: runs.length ? `${runs.length}` : '',
    Output: artefacts.length ? `${artefacts.length}` : '',
  };
  const arrow = (key: KeyboardEvent) => {
    const step = key.key === 'ArrowRight' ? 1 : key.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    key.preventDefault();
    chooseTab(TABS[(TABS.indexOf(tab.value) + step + TABS.length) % TABS.length]!);
    requestAnimationFrame(() => document.getElementById(`tab-${tab.value}`)?.focus());
  };
  return (
    <aside class="work" aria-label="Workbench">
      <Divider />
      <div class="tabs" role="tablist" aria-label="Workbench" onKeyDown={arrow}>
        {TABS.map((name) => (
          <button
            type="button"
            role="tab"
            id={`tab-${name}`}
            key={name}
            aria-selected={tab.value === name}
            aria-controls="part"
            tabIndex={tab.value === name ? 0 : -1}
            onClick={() => chooseTab(name)}
          >
            {name}
            {counts[name] && <span class="quiet count"> {counts[name]}</span>}
          </button>
        ))}
      </div>
      <div class="part" role="tabpanel" id="part" aria-labelledby={`tab-${tab.value}`} tabIndex={0}>
        <Part />
      </div>
    </aside>
  );
}
