// A question before something that cannot be taken back, or that would lose what the person typed.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

interface Choice {
  title: string;
  does: () => unknown;
}
interface Asked {
  question: string;
  choices: Choice[];
}

const asked = signal<Asked | undefined>(undefined);

export function confirm(question: string, title: string, does: () => unknown): void {
  choose(question, [{ title, does }]);
}

/** The first choice is the one that Enter takes; Escape and Cancel take none. */
export function choose(question: string, choices: Choice[]): void {
  asked.value = { question, choices };
}

export function Confirm() {
  const dialog = useRef<HTMLDialogElement>(null);
  const now = asked.value;
  useEffect(() => {
    if (now) dialog.current?.showModal();
    else dialog.current?.close();
  }, [now]);
  const take = (does?: () => unknown) => {
    asked.value = undefined;
    void does?.();
  };
  return (
    <dialog ref={dialog} aria-label="Please confirm" onClose={() => (asked.value = undefined)}>
      <p>{now?.question}</p>
      <div class="buttons">
        {now?.choices.map(({ title, does }, index) => (
          <button
            type="button"
            key={title}
            class={index ? undefined : 'primary'}
            autofocus={!index}
            onClick={() => take(does)}
          >
            {title}
          </button>
        ))}
        <button type="button" onClick={() => take()}>
          Cancel
        </button>
      </div>
    </dialog>
  );
}
