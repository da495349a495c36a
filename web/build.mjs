// Builds the page into the Python package (or `--out FOLDER`): the same sources always give the same bytes.
import { build } from 'esbuild';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const given = process.argv.indexOf('--out');
const out = given > 0 ? process.argv[given + 1] : join(here, '..', 'src', 'septet', 'web', 'assets');
const LIBRARIES = [
  'preact',
  '@preact/signals',
  '@preact/signals-core',
  'marked',
  'dompurify',
  'highlight.js',
  'diff2html',
  'diff',
  'ansi_up',
  '@profoundlogic/hogan',
];

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const result = await build({
  absWorkingDir: here,
  entryPoints: { main: 'src/main.tsx', style: 'styles/main.css', 'diff-style': 'styles/diff.css' },
  outdir: out,
  bundle: true,
  splitting: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  legalComments: 'none',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  metafile: true,
  logLevel: 'warning',
});

const made = Object.keys(result.metafile.outputs).map((path) => basename(path));
const named = (name) =>
  made.find((file) => file.startsWith(`${name}-`) && !file.startsWith('diff-') === (name !== 'diff-style'));
const page = readFileSync(join(here, 'index.html'), 'utf8')
  .replace('{{script}}', `/assets/${named('main')}`)
  .replace('{{style}}', `/assets/${named('style')}`)
  .replace('{{diff-style}}', `/assets/${named('diff-style')}`);
writeFileSync(join(out, 'index.html'), page);

const licences = LIBRARIES.map((name) => {
  const folder = join(here, 'node_modules', name);
  const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder)
    .sort()
    .find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(folder, file), 'utf8').trim() : `Licence: ${about.license}`;
  return `${name} ${about.version}\n\n${text}\n`;
});
writeFileSync(join(out, 'licences.txt'), licences.join('\n' + '-'.repeat(78) + '\n\n'));
