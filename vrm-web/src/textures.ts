/** Textures are most of what a model takes on the GPU: 2048² is 16 MB, and a third more with its smaller copies. */
import { Mesh, ShaderMaterial, Texture, type Material, type Object3D } from "three";

/** A size that fits `longest`, with the same shape. */
export function fitted(width: number, height: number, longest: number): [number, number] {
  const scale = Math.min(1, longest / Math.max(width, height, 1));
  return [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
}

export function texturesOf(scene: Object3D): Set<Texture> {
  const textures = new Set<Texture>();
  const look = (material: Material): void => {
    for (const value of Object.values(material)) if (value instanceof Texture) textures.add(value);
    if (!(material instanceof ShaderMaterial)) return;
    for (const { value } of Object.values(material.uniforms)) if (value instanceof Texture) textures.add(value);
  };
  scene.traverse((object) => {
    if (!(object instanceof Mesh)) return;
    for (const material of [object.material as Material | Material[]].flat()) look(material);
  });
  return textures;
}

/** Makes textures smaller whose longest side is longer, before they are ever sent to the GPU. */
export function fitTextures(scene: Object3D, longest: number): void {
  const done = new Set<unknown>();
  for (const { source } of texturesOf(scene)) {
    const image: unknown = source.data;
    if (done.has(source) || !(image instanceof ImageBitmap)) continue;
    done.add(source);
    const [width, height] = fitted(image.width, image.height, longest);
    if (width === image.width && height === image.height) continue;
    const canvas = new OffscreenCanvas(width, height);
    const pen = canvas.getContext("2d");
    if (!pen) continue;
    pen.drawImage(image, 0, 0, width, height);
    source.data = canvas.transferToImageBitmap();
    source.needsUpdate = true;
    image.close();
  }
}
