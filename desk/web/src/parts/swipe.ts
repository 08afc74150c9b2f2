// A finger that goes sideways over something, for a third of its width at least, says left or
// right. What it goes over follows it, so that it is seen what would happen; less far is nothing.

const enough = 1 / 3; // of the width
const begins = 12; // px sideways, before it is no tap

export function swipes(on: HTMLElement, say: (left: boolean) => void): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  let finger: { id: number; x: number; y: number } | undefined;
  let by = 0;
  const end = (done: boolean) => {
    const far = done && Math.abs(by) > on.clientWidth * enough;
    const left = by < 0;
    [finger, by] = [undefined, 0];
    on.style.translate = '';
    if (far) say(left);
  };
  on.style.touchAction = 'pan-y';
  on.addEventListener('pointerdown', (e) => e.pointerType === 'touch' && e.isPrimary && (finger = { id: e.pointerId, x: e.clientX, y: e.clientY }), { signal });
  on.addEventListener(
    'pointermove',
    (e) => {
      if (e.pointerId !== finger?.id) return;
      const [x, y] = [e.clientX - finger.x, e.clientY - finger.y];
      if (by === 0 && (Math.abs(x) < begins || Math.abs(y) > Math.abs(x))) return;
      by = x;
      on.style.translate = `${Math.round(x)}px`;
    },
    { signal },
  );
  on.addEventListener('pointerup', (e) => e.pointerId === finger?.id && end(true), { signal });
  on.addEventListener('pointercancel', () => end(false), { signal });
  return () => {
    stop.abort();
    on.style.touchAction = on.style.translate = '';
  };
}
