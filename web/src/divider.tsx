// The line between conversation and workbench: drawn with the pointer, or moved by the arrow keys.

import { useEffect, useRef, useState } from 'preact/hooks';

const KEPT = 'septet-workbench';
const LEAST = 20;
const MOST = 75;
const USUAL = 38;
const STEP = 3;

function within(share: number): number {
  return Math.round(Math.min(MOST, Math.max(LEAST, share)));
}

export function Divider() {
  const [share, setShare] = useState(() => within(Number(localStorage.getItem(KEPT)) || USUAL));
  const moving = useRef(false);
  useEffect(() => {
    document.documentElement.style.setProperty('--workbench', `${share}vw`);
    localStorage.setItem(KEPT, String(share));
  }, [share]);
  const follow = (event: PointerEvent) => {
    if (moving.current) setShare(within((1 - event.clientX / innerWidth) * 100));
  };
  const pressed = (key: KeyboardEvent) => {
    const step = { ArrowLeft: STEP, ArrowRight: -STEP }[key.key];
    if (step === undefined) return;
    key.preventDefault();
    setShare((now) => within(now + step));
  };
  return (
    <div
      class="divider"
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label="Width of the workbench"
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      aria-valuenow={share}
      onKeyDown={pressed}
      onDblClick={() => setShare(USUAL)}
      onPointerDown={(event) => {
        moving.current = true;
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={follow}
      onPointerUp={() => (moving.current = false)}
    />
  );
}
