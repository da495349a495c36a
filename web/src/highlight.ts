// Colours for code, with the few languages that our teams write; loaded when the first block is shown.

import highlighter from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import css from 'highlight.js/lib/languages/css';
import ini from 'highlight.js/lib/languages/ini';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import markdown from 'highlight.js/lib/languages/markdown';
import plaintext from 'highlight.js/lib/languages/plaintext';
import python from 'highlight.js/lib/languages/python';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

const LANGUAGES = { bash, css, ini, javascript, json, markdown, plaintext, python, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) highlighter.registerLanguage(name, language);

export function colour(block: HTMLElement): void {
  const name = /language-([\w+#-]+)/.exec(block.className)?.[1] ?? 'plaintext';
  if (block.dataset.highlighted || !highlighter.getLanguage(name)) return;
  block.innerHTML = highlighter.highlight(block.textContent ?? '', { language: name }).value;
  block.dataset.highlighted = 'yes';
}
