// A program's own colours, as classes: our policy allows no styles of others. Loaded when some output has colours.

import { AnsiUp } from 'ansi_up';
import { visible } from './text';

export function coloured(text: string): string {
  const up = new AnsiUp();
  up.use_classes = true;
  up.url_allowlist = {};
  return visible(up.ansi_to_html(text)).replace(/ style="[^"]*"/g, '');
}
