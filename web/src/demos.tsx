// A small picture of what each demo makes.

import type { JSX } from 'preact';

const PICTURES: Record<string, JSX.Element> = {
  clock: (
    <>
      <circle cx="32" cy="24" r="19" class="line" />
      <path d="M32 24V12M32 24l10 6" class="line" />
      <path d="M32 24l-7 11" class="mark-line" />
    </>
  ),
  bars: (
    <>
      <path d="M10 42h44" class="line" />
      <path d="M14 8h8v32h-8zM28 18h8v22h-8zM42 28h8v12h-8z" class="fill" />
    </>
  ),
  ctr: (
    <>
      <path d="M10 6v36h44" class="line" />
      <path d="M12 36l9-8 8 4 9-16 8 6 7-12" class="mark-line" />
    </>
  ),
  midi: (
    <>
      <path d="M24 36V10l22-4v26" class="line" />
      <ellipse cx="19" cy="37" rx="6" ry="4.5" class="fill" />
      <ellipse cx="41" cy="33" rx="6" ry="4.5" class="fill" />
    </>
  ),
  hello: (
    <>
      <path d="M10 8h44v25H34l-10 9v-9H10z" class="line" />
      <path d="M19 17h26M19 24h16" class="mark-line" />
    </>
  ),
  'pull-request': (
    <>
      <circle cx="18" cy="10" r="5" class="line" />
      <circle cx="18" cy="38" r="5" class="fill" />
      <circle cx="46" cy="38" r="5" class="fill" />
      <path d="M18 15v18M46 33V20q0-10-10-10h-6m5-5l-6 5 6 5" class="line" />
    </>
  ),
};

export function DemoPicture({ name }: { name: string }) {
  return (
    <svg viewBox="0 0 64 48" aria-hidden="true">
      {PICTURES[name] ?? <path d="M26 14l14 10-14 10z" class="fill" />}
    </svg>
  );
}
