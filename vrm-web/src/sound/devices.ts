/** Which microphones and loudspeakers the browser tells of. */

export interface Choice {
  id: string;
  label: string;
}

export interface Choices {
  inputs: Choice[];
  outputs: Choice[];
}

type Device = Pick<MediaDeviceInfo, "kind" | "deviceId" | "label">;

/**
 * What there is to choose from. Before a page may use the microphone devices have neither names nor ids,
 * so there is nothing to choose; the browser's own choice comes first, with an empty id.
 */
export function choices(devices: readonly Device[]): Choices {
  const of = (kind: MediaDeviceKind, what: string): Choice[] => {
    const seen = new Set<string>(["", "default", "communications"]);
    const named: Choice[] = [];
    for (const { kind: it, deviceId, label } of devices) {
      if (it !== kind || seen.has(deviceId)) continue;
      seen.add(deviceId);
      named.push({ id: deviceId, label: label || `${what} ${named.length + 1}` });
    }
    return [{ id: "", label: "Chosen by the browser" }, ...named];
  };
  return { inputs: of("audioinput", "Microphone"), outputs: of("audiooutput", "Loudspeaker") };
}

/** Whether a device that is in use, by its id, is there. */
export function has(list: readonly Choice[], id: string): boolean {
  return list.some((choice) => choice.id === id);
}
