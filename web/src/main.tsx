// The page: the top line, the chats, the conversation and the workbench.

import { render } from 'preact';
import { Confirm } from './confirm';
import { Conversation } from './conversation';
import { Home } from './home';
import { Help, listenToKeys } from './keys';
import { Sidebar } from './sidebar';
import { announced, arrive, link, pane, where } from './state';
import { followTheme } from './theme';
import { TopBar } from './topbar';
import { Workbench } from './workbench';

const PANES = [
  ['chats', 'Chats'],
  ['talk', 'Conversation'],
  ['work', 'Workbench'],
] as const;

function Page() {
  const { chat } = where.value;
  const known = chat && link.value !== 'unknown';
  return (
    <div class={`page show-${pane.value} ${known ? '' : 'alone'}`}>
      <TopBar />
      <Sidebar />
      <main class="middle">{chat ? <Conversation key={chat} /> : <Home />}</main>
      {known && <Workbench />}
      <nav class="panes" aria-label="Parts of the page">
        {PANES.filter(([name]) => known || name !== 'work').map(([name, title]) => (
          <button
            type="button"
            key={name}
            aria-pressed={pane.value === name}
            onClick={() => (pane.value = name)}
          >
            {title}
          </button>
        ))}
      </nav>
      <p class="sr" role="status" aria-live="polite">
        {announced.value}
      </p>
      <Help />
      <Confirm />
    </div>
  );
}

followTheme();
listenToKeys();
addEventListener('popstate', arrive);
arrive();
render(<Page />, document.getElementById('septet')!);
