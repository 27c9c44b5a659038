interface Animal { name: string, description: string, pets: Array<[name: string, units: number]> }

/** Kinds of animals, each with its pets and their units in the demo store. */
export const ANIMALS: Animal[] = [
  {
    name: 'Dogs',
    description: 'Loyal, loud and always hungry',
    pets: [['Rex', 1], ['Bella', 2], ['Waldi', 1], ['Luna', 1], ['Oskar', 3]]
  },
  {
    name: 'Cats',
    description: 'Own the place; you only pay for it',
    pets: [['Minka', 1], ['Felix', 12], ['Tiger', 1], ['Cleo', 0]]
  },
  {
    name: 'Birds',
    description: 'Early risers with opinions',
    pets: [['Coco', 4], ['Polly', 1], ['Kiwi', 6], ['Hansi', 2]]
  },
  {
    name: 'Fish',
    description: 'Quiet company',
    pets: [['Nemo', 40], ['Goldie', 25], ['Bubbles', 12], ['Neon', 120]]
  },
  {
    name: 'Small animals',
    description: 'Much fur, little space',
    pets: [['Hoppel', 3], ['Nibbles', 8], ['Speedy', 5], ['Pepper', 2]]
  }
]
