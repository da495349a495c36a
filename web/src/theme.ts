// Light or dark: as the system says, until the person says otherwise.

import { signal } from '@preact/signals';

const KEPT = 'septet-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

export const theme = signal<'light' | 'dark'>(now());

function now(): 'light' | 'dark' {
  const kept = localStorage.getItem(KEPT);
  return kept === 'light' || kept === 'dark' ? kept : system.matches ? 'dark' : 'light';
}

function show(): void {
  theme.value = now();
  document.documentElement.dataset.theme = theme.value;
}

export function followTheme(): void {
  system.addEventListener('change', show);
  addEventListener('storage', show);
  show();
}

export function turnTheme(): void {
  localStorage.setItem(KEPT, theme.value === 'dark' ? 'light' : 'dark');
  show();
}
