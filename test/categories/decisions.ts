import { createCategory, deleteCategory, updateCategory } from '../../src/categories/commands.ts'
import { decisionsOf, NEW_ID, refusals, type Rows } from '../support/decide.ts'

const CATS: Rows = { categories: [{ id: 2, name: 'Cats', description: 'They own the place' }] }
const ref = { categoryId: 2, conditions: {} }
const change = { ...ref, patch: { name: 'Felines' } }

export const decisions = [
  decisionsOf(createCategory, {
    'a name': {
      input: { category: { name: 'Dogs' } },
      outcome: {
        record: { id: NEW_ID, name: 'Dogs' },
        etag: '"1"',
        events: ['category.created'],
        saved: { categories: { [NEW_ID]: { name: 'Dogs' } } }
      }
    },
    'a description': {
      input: { category: { name: 'Dogs', description: '' } },
      outcome: {
        record: { id: NEW_ID, name: 'Dogs', description: '' },
        etag: '"1"',
        events: ['category.created'],
        saved: { categories: { [NEW_ID]: { name: 'Dogs', description: '' } } }
      }
    }
  }),
  decisionsOf(updateCategory, {
    ...refusals(change, CATS, 'CATEGORY_NOT_FOUND'),
    'another name': {
      rows: CATS,
      input: { ...change, conditions: { ifMatch: ['"1"'] } },
      outcome: {
        record: { id: 2, name: 'Felines', description: 'They own the place' },
        etag: '"2"',
        events: ['category.updated'],
        saved: { categories: { 2: { name: 'Felines', version: 2 } } }
      }
    },
    'null for the description': {
      rows: CATS,
      input: { ...ref, patch: { description: null } },
      outcome: {
        record: { id: 2, name: 'Cats' },
        etag: '"2"',
        events: ['category.updated'],
        saved: { categories: { 2: { description: null, version: 2 } } }
      }
    },
    'a change of a row that was restored': {
      rows: { categories: [{ id: 2, name: 'Cats', version: 3, versionFloor: 8 }] },
      input: change,
      outcome: {
        record: { id: 2, name: 'Felines' },
        etag: '"9"',
        events: ['category.updated'],
        saved: { categories: { 2: { name: 'Felines', version: 9 } } }
      }
    },
    'the name that it has': {
      rows: CATS,
      input: { ...ref, patch: { name: 'Cats' } },
      outcome: { record: { id: 2, name: 'Cats', description: 'They own the place' }, etag: '"1"' }
    },
    'an empty patch': {
      rows: CATS,
      input: { ...ref, patch: {} },
      outcome: { record: { id: 2, name: 'Cats', description: 'They own the place' }, etag: '"1"' }
    }
  }),
  decisionsOf(deleteCategory, {
    ...refusals(ref, CATS, 'CATEGORY_NOT_FOUND'),
    'a category without pets': {
      rows: { ...CATS, pets: [{ id: 7, categoryId: 3 }] },
      input: { ...ref, conditions: { ifMatch: ['"1"'] } },
      outcome: { events: ['category.deleted'], saved: { categories: { 2: null } } }
    },
    'a category with a pet': {
      rows: { ...CATS, pets: [{ id: 7, categoryId: 2 }] }, input: ref, outcome: 'CATEGORY_IN_USE'
    }
  })
]
