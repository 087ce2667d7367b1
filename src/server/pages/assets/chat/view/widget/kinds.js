// The view of each type of component.

import { Badge, Icon, Image } from './media.js';
import { Box, Divider, Form, Spacer, Unknown } from './boxes.js';
import { Button } from './button.js';
import { Card } from './card.js';
import { Chart } from './chart.js';
import { Checkbox, RadioGroup, Select } from './choices.js';
import { DatePicker, Input, Textarea } from './inputs.js';
import { Caption, Label, Markdown, Text, Title } from './texts.js';
import { ListItem, ListView } from './list.js';
import { Table, TableCell, TableHeader, TableRow } from './table.js';

export { Unknown };

/**
 * Views by component type. Each is constructed with a context, has an `element`, and is shown again after each change of its component.
 * @type {Record<string, new (context: import('./context.js').Context) => {element: HTMLElement, show: (component: object) => void}>}
 */
export const KINDS = {
  Badge,
  Basic: Box,
  Box,
  Button,
  Caption,
  Card,
  Chart,
  Checkbox,
  Col: Box,
  DatePicker,
  Divider,
  Form,
  Icon,
  Image,
  Input,
  Label,
  ListView,
  ListViewItem: ListItem,
  Markdown,
  RadioGroup,
  Row: Box,
  Select,
  Spacer,
  Table,
  'Table.Cell': TableCell,
  'Table.Header': TableHeader,
  'Table.Row': TableRow,
  Text,
  Textarea,
  Title,
  Transition: Box,
};
